"""Blocks: which lines they hold, where they say these stand, and that neither chunks nor writers between them show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.extract import Limits
from tests.unit.extract.finding import error_lines, find

INFO = "2026-03-12 03:14:15,123 INFO train: step {} loss 2.31\n"
ERROR = "2026-03-12 03:14:15,123 ERROR train: step failed\n"


def _infos(count: int, start: int = 0) -> str:
    return "".join(INFO.format(start + number) for number in range(count))


def test_a_clean_text_has_no_blocks_and_its_lines_are_counted() -> None:
    found = find(_infos(5000))
    assert found.blocks == ()
    assert found.lines == 5000
    assert found.counts == {}


def test_a_block_says_where_it_stands_and_has_three_lines_before_and_two_after() -> None:
    text = _infos(1000) + ERROR + _infos(1000)
    (block,) = find(text).blocks
    assert (block.first_line, block.last_line) == (998, 1003)
    assert text.encode()[block.offset : block.offset + len(block.text)] == block.text
    assert block.numbers == tuple(range(998, 1004))
    assert block.is_context == (True, True, True, False, True, True)


def test_errors_whose_context_meets_are_one_block() -> None:
    near, far = _infos(5), _infos(6)
    assert len(find(ERROR + near + ERROR).blocks) == 1
    assert len(find(ERROR + far + ERROR).blocks) == 2


def test_a_traceback_of_one_rank_is_put_together_between_lines_of_another() -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "train.py", line 12, in main',
        "    step()",
        "ValueError: bad batch",
    ]
    text = "".join(f"[rank3]: {line}\n[rank2]: step {number}\n" for number, line in enumerate(trace))
    (block,) = find(text).blocks
    assert block.text == "".join(f"[rank3]: {line}\n" for line in trace).encode()
    assert block.numbers == (1, 3, 5, 7)


def test_a_last_line_without_newline_is_a_line() -> None:
    found = find("a\nKilled")
    assert found.lines == 2
    assert found.blocks[0].text == b"a\nKilled"


def test_bare_carriage_returns_end_lines_that_have_no_number_of_their_own() -> None:
    bars = "".join(f"\r {part:3}%|###   | {part}/100 [00:01<00:09]" for part in range(100))
    (block,) = find(f"start\n{bars}\rRuntimeError: CUDA error: launch failure\nend\n").blocks
    assert error_lines(find(f"start\n{bars}\rRuntimeError: CUDA error: launch failure\nend\n")) == [
        b"RuntimeError: CUDA error: launch failure"
    ]
    assert block.numbers == (2, 2, 2, 2, 3)


def test_a_million_times_the_same_error_keeps_the_first_and_the_last_and_counts_the_rest() -> None:
    limits = Limits(first_alike=3, last_alike=2)
    text = "".join(f"2026-03-12 03:14:15,123 ERROR rpc: peer {number} lost\n" for number in range(20_000))
    found = find(text, limits=limits)
    assert found.counts == {"ERROR": 20_000}
    assert found.cut_blocks == 20_000 - 5
    assert [line.split()[5] for line in error_lines(found)] == [b"0", b"1", b"2", b"19998", b"19999"]
    assert sum(block.left_out for block in found.blocks) == 20_000 - 5


def test_a_line_without_end_is_clipped_and_that_is_said() -> None:
    text = b"a\n" + b"ERROR " + b"x" * 300_000 + b"\nnext\n"
    (block,) = find(text).blocks
    assert len(block.text) < 70_000
    assert b"[... 234470 more bytes of this line are left out]\n" in block.text
    assert block.numbers == (1, 2, 3)
    assert find(text, cuts=range(0, len(text), 1000)) == find(text)


PIECES = st.sampled_from(
    [
        INFO,
        ERROR,
        "  goes on\n",
        "[rank3]: Traceback (most recent call last):\n",
        '[rank3]:   File "a.py", line 3, in f\n',
        "[rank3]: ValueError: x\n",
        "[rank2]: step 4\n",
        "Traceback (most recent call last):\n",
        '  File "a.py", line 3, in f\n',
        "KeyError: 'x'\n",
        "\n",
        "\r\n",
        "\r 3%|#  | 3/100\r 4%|#  | 4/100",
        "2026-03-12T03:14:15.123456789Z stderr P 2026-03-12 03:14:15,123 ERR",
        "2026-03-12T03:14:15.123456789Z stderr P ERR\n",
        "2026-03-12T03:14:15.123456789Z stderr F OR: cut in two\n",
        "x" * 150,
        "ERROR " + "y" * 300 + "\n",
        "Killed",
        "\xff\n",
    ]
)
SMALL = Limits(line_bytes=120, window_bytes=200, record_bytes=400, total_bytes=6000, first_alike=2, last_alike=1)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 3000), max_size=12), st.booleans())
def test_the_chunking_never_shows(pieces: list[str], cuts: list[int], is_small: bool) -> None:
    text = "".join(pieces).encode("latin-1")
    limits = SMALL if is_small else Limits()
    whole = find(text, limits=limits)
    assert find(text, limits=limits, cuts=cuts) == whole
    assert find(text, limits=limits, cuts=range(len(text))) == whole
    assert whole.lines == text.count(b"\n") + (text[-1:] not in (b"\n", b""))

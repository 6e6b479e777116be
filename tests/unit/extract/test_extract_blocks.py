"""How an error goes on: each text below is one block, and the lines marked ``>`` are what belongs to the error."""

from __future__ import annotations

import json

import pytest

from tests.unit.extract.finding import error_lines, find

TEXTS = {
    "a chained traceback": """
  step 1
> Traceback (most recent call last):
>   File "a.py", line 3, in f
>     {}["k"]
>     ~~^^^^^
> KeyError: 'k'

> During handling of the above exception, another exception occurred:

> Traceback (most recent call last):
>   File "a.py", line 5, in f
>     raise Weird("x") from None
> a.Weird: x

> The above exception was the direct cause of the following exception:

> Traceback (most recent call last):
>   File "a.py", line 9, in <module>
> RuntimeError: final
  step 2
  step 3
""",
    "a group of exceptions": """
>   + Exception Group Traceback (most recent call last):
>   |   File "a.py", line 21, in <module>
>   |     raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])
>   | ExceptionGroup: two (2 sub-exceptions)
>   +-+---------------- 1 ----------------
>     | ValueError: a
>     +---------------- 2 ----------------
>     | Traceback (most recent call last):
>     |   File "a.py", line 35, in a
>     | TypeError: b
>     +------------------------------------
  next
""",
    "a worker's traceback inside another": """
> Traceback (most recent call last):
>   File "train.py", line 3, in <module>
> RuntimeError: Caught ValueError in DataLoader worker process 0.
> Original Traceback (most recent call last):
>   File "worker.py", line 308, in _worker_loop
>     data = fetcher.fetch(index)
> ValueError: bad image
  next
""",
    "what torch's C++ throws": """
> [rank3]:[E1123 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout
> Exception raised from checkTimeout at ProcessGroupNCCL.cpp:618 (most recent call first):
> frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7999 in libc10.so)
> frame #1: <unknown function> + 0xdbbf4 (0x7f1f in libstdc++.so.6)
""",
    "an abort": """
> terminate called after throwing an instance of 'c10::Error'
>   what():  CUDA error: device-side assert triggered
> CUDA kernel errors might be asynchronously reported at some other API call
> For debugging consider passing CUDA_LAUNCH_BLOCKING=1
> Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
> Aborted (core dumped)
""",
    "a fatal error of the interpreter": """
> Fatal Python error: Segmentation fault

> Current thread 0x00007f93c2643b80 (most recent call first):
>   File "/lib/python3.11/ctypes/__init__.py", line 519 in string_at
>   File "<string>", line 1 in <module>
""",
    "Java": """
> Exception in thread "main" java.lang.RuntimeException: job failed
> \tat org.example.Train.main(Train.java:12)
> Caused by: java.io.IOException: disk quota exceeded
> \tat org.example.Disk.write(Disk.java:99)
> \t... 12 more
  next
""",
    "Go": """
> panic: runtime error: index out of range [3] with length 3

> goroutine 1 [running]:
> main.work(...)
> \t/build/work.go:9
> main.main()
> \t/build/main.go:5 +0x1d
> exit status 2
  next
""",
    "torchrun's box": """
> torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
> ============================================================
> train.py FAILED
> ------------------------------------------------------------
> Failures:
>   <NO_OTHER_FAILURES>
> ------------------------------------------------------------
> Root Cause (first observed failure):
> [0]:
>   time      : 2026-03-12_03:14:15
>   host      : gpu-001
>   rank      : 3 (local_rank: 3)
>   exitcode  : -9 (pid: 4711)
>   error_file: <N/A>
>   traceback : Signal 9 (SIGKILL) received by PID 4711
> ============================================================
  next
""",
    "a record of several lines": """
  2026-03-12 03:14:15,123 INFO train: step 1
> 2026-03-12 03:14:15,123 ERROR train: bad configuration:
>   expected: 8
>   found: 7
  2026-03-12 03:14:16,123 INFO train: step 2
""",
    "Ray": """
> \x1b[36m(Trainer pid=7, ip=10.0.0.7)\x1b[0m Traceback (most recent call last):
> \x1b[36m(Trainer pid=7, ip=10.0.0.7)\x1b[0m   File "python/ray/_raylet.pyx", line 1, in ray._raylet.execute_task
> \x1b[36m(Trainer pid=7, ip=10.0.0.7)\x1b[0m ValueError: bad batch
""",
    "a rich traceback": """
> ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
> │ /tmp/lg.py:10 in <module>                                                    │
> │ ❱ 10 try: {}["x"]                                                            │
> ╰──────────────────────────────────────────────────────────────────────────────╯
> KeyError: 'x'
  next
""",
    "lines of another thread within a traceback": """
> Traceback (most recent call last):
  2026-03-12 03:14:15,123 INFO data: prefetched
>   File "a.py", line 3, in f
  2026-03-12 03:14:16,123 INFO data: prefetched
>     step()
> ValueError: bad batch
""",
}


def _split(text: str) -> tuple[list[str], list[bytes]]:
    lines = text.removeprefix("\n").splitlines()
    return [line[2:] for line in lines], [line[2:].encode() for line in lines if line.startswith(">")]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_error_holds_its_continuation_and_no_more(text: str) -> None:
    lines, errors = _split(text)
    found = find("".join(line + "\n" for line in lines))
    assert error_lines(found) == errors
    assert len(found.blocks) == 1


@pytest.mark.parametrize(
    "prefix", ["[rank3]: ", "3: ", "[default3]:", "(W pid=1) ", "2026-03-12T03:14:15.1234Z stderr F "]
)
@pytest.mark.parametrize("name", ["a chained traceback", "a group of exceptions", "torchrun's box", "Java"])
def test_it_does_so_behind_a_prefix_and_between_other_writers(name: str, prefix: str) -> None:
    lines, errors = _split(TEXTS[name])
    other = "2026-03-12T03:14:15.1234Z stdout F step\n" if "stderr" in prefix else "[rank2]: step\n"
    found = find("".join(f"{prefix}{line}\n{other}" for line in lines))
    assert error_lines(found) == [prefix.encode() + line for line in errors]
    assert len(found.blocks) == 1


def test_two_tracebacks_one_after_the_other_are_two_errors() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: x\n'
    assert find(trace * 2).counts == {"ERROR": 2}


def test_a_line_that_the_runtime_cut_is_read_whole() -> None:
    head = "2026-03-12T03:14:15.123456789Z stderr "
    text = f"{head}P 2026-03-12 03:14:15,123 ERR\n{head.replace('err', 'out')}F fine\n{head}F OR train: failed\n"
    (block,) = find(text).blocks
    assert block.numbers == (1, 3)
    assert not find(f"{head}P a long line\n{head}P error: is not where\n{head}F ERROR a level stands\n").blocks


def test_a_line_that_docker_cut_is_read_whole() -> None:
    def entry(log: str) -> str:
        return (
            json.dumps({"log": log, "stream": "stderr", "time": "2026-03-12T03:14:15Z"}, separators=(",", ":")) + "\n"
        )

    assert find(entry("Traceback (most") + entry(" recent call last):\n")).blocks[0].numbers == (1, 2)
    assert not find(entry("a long line ") + entry("Killed\n")).blocks


def test_a_traceback_of_docker_lines_goes_on_to_its_exception() -> None:
    trace = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    f()", "a.Weird: x", "fine"]
    lines = [
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-03-12T03:14:15Z"}, separators=(",", ":"))
        for line in trace
    ]
    assert error_lines(find("\n".join(lines))) == [line.encode() for line in lines[:4]]


def test_invalid_bytes_and_colours_stay_as_they_were() -> None:
    line = b"\x1b[31mERROR\x1b[0m caf\xe9 \xff\xfe\x00\r\n"
    assert find(line).blocks[0].text == line


def test_an_error_that_never_ends_keeps_its_beginning_and_its_end() -> None:
    frames = "".join(f'  File "a.py", line {number}, in f\n' for number in range(100_000))
    found = find("Traceback (most recent call last):\n" + frames + "RecursionError: too deep\n")
    (block,) = found.blocks
    assert block.text.startswith(b"Traceback")
    assert block.text.endswith(b"RecursionError: too deep\n")
    assert len(block.text) < 300_000
    assert found.cut_bytes == len(frames) + 60 - len(block.text)


def test_what_waits_for_a_silent_writer_is_given_up() -> None:
    lines = ["[rank3]: Traceback (most recent call last):\n", *["[rank2]: step\n"] * 2000, '[rank3]:   File "a"\n']
    found = find("".join(lines))
    assert found.counts == {"ERROR": 1}
    assert error_lines(found) == [lines[0].strip().encode()]

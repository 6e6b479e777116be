"""Tar headers written by hand: ustar, with PAX records only for what ustar cannot say.

Knows the tar format; never what is archived or why. By hand because ``tarfile`` takes four times as long, which shows
where members are 2 KB. A time with a fraction of a second is one of the things that ustar cannot say.
"""

from __future__ import annotations

from typing import Final
from zlib import adler32

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
PADDING: Final = tuple(bytes(-size % BLOCK) for size in range(BLOCK))  # by size % BLOCK

_NS: Final = 1_000_000_000
_SIZE_LIMIT: Final = 8**11
_ID_LIMIT: Final = 8**7
_NAME_BYTES: Final = 100
_PREFIX_BYTES: Final = 155


def _tail(kind: bytes, prefix: bytes = b"") -> bytes:
    """What follows the checksum field."""
    rest = kind + bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\0" * 2 + prefix.ljust(_PREFIX_BYTES, b"\0")
    return rest.ljust(BLOCK - 156, b"\0")


def _owner(mode: int, uid: int, gid: int) -> bytes:
    return b"%07o\0%07o\0%07o\0" % (mode & 0o7777, uid, gid)


def _block(name: bytes, owner: bytes, size: int, mtime: int, tail: bytes) -> bytes:
    head = name.ljust(_NAME_BYTES, b"\0") + owner + b"%011o\0%011o\0" % (size, mtime)
    # The low half of Adler-32 is 1 + the sum of the bytes, modulo 65521. Every byte here is ASCII, so the sum of a
    # block is below 65,024 and the modulus never bites; 256 are the eight spaces that stand for the checksum itself.
    total = (adler32(head) & 0xFFFF) + (adler32(tail) & 0xFFFF) - 2 + 256
    return head + b"%06o\0 " % total + tail


_FILE_TAIL: Final = _tail(b"0")
_PAX_TAIL: Final = _tail(b"x")
_PAX_OWNER: Final = _owner(0o644, 0, 0)
_PAX_NAME: Final = b"PaxHeader"
_TIME_RECORD: Final = b"30 mtime=%010d.%09d\n"  # exactly 30 bytes while seconds have ten digits
_TIME_HEADER: Final = _block(_PAX_NAME, _PAX_OWNER, 30, 0, _PAX_TAIL)
_TIME_PADDING: Final = bytes(BLOCK - 30)


def _record(key: bytes, value: bytes) -> bytes:
    size = len(key) + len(value) + 3
    total = size + len(str(size))
    total = size + len(str(total))
    return b"%d %b=%b\n" % (total, key, value)


def _pax(records: list[bytes]) -> bytes:
    body = b"".join(records)
    return _block(_PAX_NAME, _PAX_OWNER, len(body), 0, _PAX_TAIL) + body + PADDING[len(body) % BLOCK]


def _pax_time(mtime_ns: int) -> bytes:
    seconds, fraction = divmod(abs(mtime_ns), _NS)
    sign = b"-" if mtime_ns < 0 else b""
    return sign + (b"%d.%09d" % (seconds, fraction) if fraction else b"%d" % seconds)


class TarHeaders:
    """Makes headers, keeping what members of one folder and one owner have in common."""

    def __init__(self) -> None:
        self._folders: dict[bytes, tuple[bytes, int, bytes | None]] = {}
        self._owners: dict[tuple[int, int, int], bytes] = {}

    def make(self, folder: bytes, name: bytes, *, size: int, mtime_ns: int, mode: int, uid: int, gid: int) -> bytes:
        """The blocks that stand before a regular file's content. ``folder`` has no trailing slash and is not empty."""
        lead, room, prefix_tail = self._folders.get(folder) or self._folder(folder)
        owner = self._owners.get((mode, uid, gid)) or self._make_owner(mode, uid, gid)
        seconds, fraction = divmod(mtime_ns, _NS)
        plain = owner and mtime_ns >= 0 and 1_000_000_000 <= seconds < _SIZE_LIMIT and size < _SIZE_LIMIT
        if plain and name.isascii():
            time = b""
            if fraction:
                time = _TIME_HEADER + _TIME_RECORD % (seconds, fraction) + _TIME_PADDING
            if len(name) <= room:
                return time + _block(lead + name, owner, size, seconds, _FILE_TAIL)
            if prefix_tail is not None and len(name) <= _NAME_BYTES:
                return time + _block(name, owner, size, seconds, prefix_tail)
        return self._with_pax(folder + b"/" + name, size=size, mtime_ns=mtime_ns, mode=mode, uid=uid, gid=gid)

    def _with_pax(self, path: bytes, *, size: int, mtime_ns: int, mode: int, uid: int, gid: int) -> bytes:
        records = []
        short = path
        if not path.isascii() or len(path) > _NAME_BYTES:
            if not _is_utf8(path):
                records.append(_record(b"hdrcharset", b"BINARY"))
            records.append(_record(b"path", path))
            short = bytes(byte if 32 <= byte < 127 else 0x5F for byte in path[-_NAME_BYTES:])
        if size >= _SIZE_LIMIT:
            records.append(_record(b"size", b"%d" % size))
            size = 0
        if not 0 <= mtime_ns < _SIZE_LIMIT * _NS or mtime_ns % _NS:
            records.append(_record(b"mtime", _pax_time(mtime_ns)))
        if not 0 <= uid < _ID_LIMIT:
            records.append(_record(b"uid", b"%d" % uid))
            uid = 0
        if not 0 <= gid < _ID_LIMIT:
            records.append(_record(b"gid", b"%d" % gid))
            gid = 0
        mtime = mtime_ns // _NS if 0 <= mtime_ns < _SIZE_LIMIT * _NS else 0
        return (_pax(records) if records else b"") + _block(short, _owner(mode, uid, gid), size, mtime, _FILE_TAIL)

    def _folder(self, folder: bytes) -> tuple[bytes, int, bytes | None]:
        lead = folder + b"/"
        is_ascii = folder.isascii()
        room = _NAME_BYTES - len(lead) if is_ascii else -1
        prefix_tail = _tail(b"0", folder) if is_ascii and len(folder) <= _PREFIX_BYTES else None
        entry = self._folders[folder] = (lead, room, prefix_tail)
        return entry

    def _make_owner(self, mode: int, uid: int, gid: int) -> bytes:
        fits = 0 <= uid < _ID_LIMIT and 0 <= gid < _ID_LIMIT
        owner = self._owners[mode, uid, gid] = _owner(mode, uid, gid) if fits else b""
        return owner


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_safe_path(path: bytes) -> bool:
    """Relative, no empty, ``.`` or ``..`` component, no NUL: joined below a folder it stays there."""
    return b"\0" not in path and all(part not in (b"", b".", b"..") for part in path.split(b"/"))

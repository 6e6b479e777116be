"""Looking through what is being stored for errors, and keeping what was found in an archive beside it.

Runs inside a worker, on the bytes that are read anyway. An order's companions go into one archive, begun with the first
of its members that has errors; most orders have none. What a crash leaves is the temporary, or the published object:
both are named in the batch's intent. They are never adopted, since their sources are there until they are committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import starmap
from types import TracebackType
from typing import Final, Self

from lifecycle.archive import ArchiveContext, ArchiveFacts, ArchiveWriter, MemberFacts, stored_shares, verify_archive
from lifecycle.errors import LeftBehind, LifecycleError, Skipped
from lifecycle.execute.orders import ArchiveTarget, Companions, PackedCompanion, Refusal, Trouble
from lifecycle.extract import Decoding, ErrorFinder, NotDecodable, SourceFacts, is_clean, render
from lifecycle.model import Content
from lifecycle.names import companion_name
from lifecycle.ports import ObjectWriter
from lifecycle.tiers import Tier, open_tier

_NONE: Final = Companions(size_bytes=0, raw_bytes=0, digest=b"", manifest_digest=b"", form="", members=())


def context_of(target: ArchiveTarget, *, replaces: tuple[str, ...] = ()) -> ArchiveContext:
    """What an archive made for ``target`` says of itself."""
    return ArchiveContext(
        catalog_id=target.catalog_id,
        place_uid=target.place_uid,
        team=target.team,
        class_name=target.class_name,
        day=target.day,
        created_ns=target.created_ns,
        gid=target.gid,
        mode=target.mode,
        replaces=replaces,
    )


class Beside:
    """The companions of one order. Use as a context manager: what was not published is gone when it is left."""

    def __init__(self, target: ArchiveTarget) -> None:
        self._target = target
        self._tier: Tier | None = None
        self._out: ObjectWriter | None = None
        self._writer: ArchiveWriter | None = None
        self._facts: ArchiveFacts | None = None
        self._sources: list[int] = []  # in the order of their companions
        self._blocks: list[tuple[int, int]] = []
        self._failed: list[Refusal] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._out is not None:
            self._out.abort()  # does nothing after publish
        if self._tier is not None:
            self._tier.close()

    def look(self, facts: MemberFacts, content: Content) -> Look:
        """A look through one member, of which the bytes are given to it as they are read."""
        return Look(self, facts, content)

    def look_whole(self, facts: MemberFacts, content: Content, data: bytes, digest: bytes) -> None:
        """Look through a member that is at hand. The fast path for small ones, of which most have no errors."""
        if not content.is_compressed and is_clean(data):
            self._blocks.append((facts.segment_id, 0))
            return
        look = self.look(facts, content)
        look.take(data)
        look.end(digest)

    @contextlib.contextmanager
    def published(self) -> Iterator[None]:
        """Sealed, verified and under its key; taken back if the block fails, since it is nothing without it.

        Raises as a tier's writer does, and Damaged; LeftBehind if it could not be taken back."""
        if self._writer is None or self._out is None:
            yield
            return
        facts = self._facts = self._writer.finish()
        reader = self._out.seal()
        with contextlib.closing(reader):
            verify_archive(reader, facts, name=self._target.key, threads=1)
        self._out.publish()
        try:
            yield
        except BaseException as error:
            self._take_back(error)
            raise

    @staticmethod
    def nothing() -> Companions:
        """The result of a look that came to nothing."""
        return _NONE

    def result(self) -> Companions:
        """What was looked through, and the object if there is one."""
        made = _NONE if self._facts is None else _packed(self._facts, self._sources)
        return made._replace(blocks=tuple(self._blocks), failed=tuple(self._failed))

    def ended(self, facts: MemberFacts, finder: ErrorFinder, digest: bytes) -> None:
        """One member was looked through to its end; ``digest`` is that of its bytes as they lie there."""
        found = finder.finish()
        if found.blocks:
            source = SourceFacts(facts.source, facts.path, facts.size, facts.mtime_ns, digest)
            text = render(found, source)
            try:
                self._begun().add_member(self._facts_of(facts, len(text)), text)
            except Skipped as error:  # a folder of the source is called that: in an archive of its own it can be
                self.failed(facts, error.message)
                return
            self._sources.append(facts.segment_id)
        self._blocks.append((facts.segment_id, len(found.blocks)))

    def failed(self, facts: MemberFacts, detail: str) -> None:
        """One member could not be read as text: its errors are not kept yet."""
        self._failed.append(
            Refusal(segment_id=facts.segment_id, trouble=Trouble.UNREADABLE, detail=f"errors not kept: {detail}")
        )

    def _facts_of(self, source: MemberFacts, size: int) -> MemberFacts:
        folder, slash, name = source.path.rpartition(b"/")
        return source._replace(
            segment_id=-source.segment_id,  # it has no number of its own before it is recorded
            path=folder + slash + companion_name(name),
            size=size,
            class_name=self._target.class_name,
        )

    def _begun(self) -> ArchiveWriter:
        if self._writer is None:
            target = self._target
            self._tier = open_tier(target.tier)
            self._out = self._tier.create(target.key, temporary=target.temporary, mode=target.mode, gid=target.gid)
            self._writer = ArchiveWriter(self._out, level=target.zstd_level, context=context_of(target))
        return self._writer

    def _take_back(self, error: BaseException) -> None:
        assert self._tier is not None and self._facts is not None
        try:
            self._tier.remove(self._target.key, size_bytes=self._facts.size_bytes)
        except (LifecycleError, OSError) as again:
            raise LeftBehind(f"{error}; and {self._target.key} is left behind: {again}") from error


class Look:
    """One member on its way past. Give it all bytes in order, then ``end`` it; if it is not ended, nothing is known."""

    def __init__(self, beside: Beside, facts: MemberFacts, content: Content) -> None:
        self._beside = beside
        self._facts = facts
        self._finder = ErrorFinder()
        self._decoding = Decoding(content) if content.is_compressed else None
        self._trouble = ""

    def take(self, chunk: bytes) -> None:
        if self._decoding is None:
            self._finder.feed(chunk)
        elif not self._trouble:
            try:
                for text in self._decoding.feed(chunk):
                    self._finder.feed(text)
            except NotDecodable as error:
                self._trouble = error.message

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, each looked through before it is passed on."""
        for chunk in chunks:
            self.take(chunk)
            yield chunk

    def end(self, digest: bytes) -> None:
        if self._decoding is not None and not self._trouble:
            try:
                self._decoding.finish()
            except NotDecodable as error:
                self._trouble = error.message
        if self._trouble:
            self._beside.failed(self._facts, self._trouble)
        else:
            self._beside.ended(self._facts, self._finder, digest)


def _packed(facts: ArchiveFacts, sources: list[int]) -> Companions:
    shares = stored_shares(facts.size_bytes, facts.sizes)
    rows = zip(sources, facts.offsets, facts.sizes, facts.digests, shares, strict=True)
    return Companions(
        size_bytes=facts.size_bytes, raw_bytes=facts.raw_bytes, digest=facts.digest,
        manifest_digest=facts.manifest_digest, form=facts.form.value, members=tuple(starmap(PackedCompanion, rows)),
    )  # fmt: skip

"""The archive format: a seekable zstd file around a PAX tar (or around one segment), with a manifest inside."""

from lifecycle.archive.manifest import (
    ArchiveContext,
    Form,
    Manifest,
    MemberFacts,
    StoredMember,
    stored_shares,
)
from lifecycle.archive.reader import ArchiveReader, ReadMember, open_archive
from lifecycle.archive.single import SingleWriter
from lifecycle.archive.verify import check_archive, verify_archive
from lifecycle.archive.writer import ArchiveFacts, ArchiveWriter, MemberWriter

__all__ = [
    "ArchiveContext",
    "ArchiveFacts",
    "ArchiveReader",
    "ArchiveWriter",
    "Form",
    "Manifest",
    "MemberFacts",
    "MemberWriter",
    "ReadMember",
    "SingleWriter",
    "StoredMember",
    "check_archive",
    "open_archive",
    "stored_shares",
    "verify_archive",
]

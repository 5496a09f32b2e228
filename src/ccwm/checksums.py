"""Lines of JSON that carry a checksum of their own bytes and of their place in the file."""

from __future__ import annotations

import zlib

HEAD = b'{"sum":"'
SIZE = len(HEAD) + len('01234567",')


def seal(line: bytes, at: int = 0) -> bytes:
    """A JSON object that starts at byte ``at`` of its file, with its checksum as the first key."""
    return b'%s%08x",%s' % (HEAD, zlib.crc32(line, at), line[1:])


def is_sealed(line: bytes) -> bool:
    """Whether a line claims to have a checksum."""
    return line.startswith(HEAD)


def unseal(line: bytes, at: int = 0) -> bytes:
    """The JSON object that was sealed for this place; ValueError where any byte is another."""
    found = b"{" + line[SIZE:]
    if seal(found, at) != line:
        raise ValueError("it is not what was written there")
    return found

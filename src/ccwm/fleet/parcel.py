"""What travels between home and a slot: named bytes in a tar, never a pickle."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping

from ccwm.errors import UserError

LOCK = "lock.json"
"""The member with entries of ``dvc.lock``; all others are files by their path in the project."""


def pack(members: Mapping[str, bytes]) -> bytes:
    """A tar of these members; equal members give equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in sorted(members.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def unpack(parcel: bytes) -> dict[str, bytes]:
    """The members of a parcel."""
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(parcel)) as tar:
            for info in tar:
                file = tar.extractfile(info) if info.isreg() else None
                if file is None:
                    raise UserError(f"a parcel holds {info.name}, which is no file")
                found[info.name] = file.read()
    except tarfile.TarError as error:
        raise UserError(f"a parcel is damaged ({error})") from None
    return found


def digest(*parts: bytes | str) -> str:
    """Sixteen hexadecimal digits that change with any of the parts."""
    key = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        key.update(len(data).to_bytes(8, "big") + data)
    return key.hexdigest()[:16]

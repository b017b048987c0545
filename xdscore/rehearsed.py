"""Versions of rehearsed content: content that some clients are sent for a moment, and that is no revision. Pure.

Such a version is told from every other by its text alone, so that no ACK and no refusal of rehearsed content is ever
taken for one of a revision (rollouts.md R6 and "Rehearsal"), even where a revision has the same bytes, and however late
the fact arrives.
"""

from hashlib import blake2b
from typing import Final

# Versions of revisions are hexadecimal digits.
_MARK: Final = "r"
_DIGEST_BYTES: Final = 8
_VERSION_CHARS: Final = 16


def rehearsed_version(rehearsal: str, address: bytes) -> str:
    """The version on the wire (`version_info`) of the content whose bytes have this address, in the rehearsal with this
    id. Another rehearsal gives it another version.
    """
    hashed = blake2b(address, digest_size=_DIGEST_BYTES, key=rehearsal.encode(), person=b"parley-rehearse")
    return (_MARK + hashed.hexdigest())[:_VERSION_CHARS]


def is_rehearsed(version: str) -> bool:
    """Whether a version is that of rehearsed content."""
    return version.startswith(_MARK)

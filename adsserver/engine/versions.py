"""The version of a state: a function of what is shown, and of nothing else (B8, F7, I8).

Each shown thing (a resource under a name, or an error under a name) has a mark, a 128-bit number; the version of a
state is the sum of its marks. So equal states have equal versions on every replica, a state changes its version exactly
when something in it does, and a step of one name costs two additions, however large the state is. Nothing is ever
withheld because two versions are equal (B9), so that nobody gains anything by constructing a collision.
"""

from functools import lru_cache
from hashlib import blake2b

from adsserver.engine.told import Absent, Told
from xdscore.errors import ResourceError
from xdscore.snapshot import Content, Snapshot

MARK_BYTES = 16
_MODULUS = 1 << (8 * MARK_BYTES)


def mark(name: str, shown: Told) -> int:
    """What `name` adds to the version of a state in which it is shown like this."""
    match shown:
        case Content(version=""):
            # A copy that nobody knows anything about was shown by nobody.
            return 0
        case Content(version=version):
            return _known_mark(name, version)
        case ResourceError(text=text):
            # The text starts with the code's word, so that it stands for the whole entry (interfaces.md section 5).
            return _mark(name, "error", text)
        case Absent():
            return 0


def remember_marks(snapshot: Snapshot, before: Snapshot | None) -> None:
    """Compute the marks of what is served since `before`, so that no stream waits for them; from any thread."""
    for word, state in snapshot.types.items():
        earlier = before.types[word] if before is not None else None
        if state is earlier:
            continue
        known = earlier.served if earlier is not None else {}
        for name, entry in state.served.items():
            if known.get(name) is not entry:
                mark(name, entry.content)


def version_with(version: str, marks: int) -> str:
    """The version of a state that shows, beside what this version stands for, things of these marks."""
    return version_text(int(version, base=16) + marks)


def version_text(total: int) -> str:
    """The `version_info` for this sum of marks, as 32 hexadecimal digits; never empty (F7)."""
    return f"{total % _MODULUS:032x}"


# Room for every resource of a large environment (reliability (e): 100,000). Errors are for any name a client makes up.
@lru_cache(maxsize=131_072)
def _known_mark(name: str, version: str) -> int:
    return _mark(name, "resource", version)


def _mark(name: str, what: str, value: str) -> int:
    # The length makes the three parts unambiguous, whatever characters a client put into a name.
    text = f"{len(name)}:{name}{what}:{value}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MARK_BYTES).digest(), "big")

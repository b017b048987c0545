"""Glob collections: what a name of the form `xdstp://authority/type/directory/*?context` asks for (xRFC TP1, H3).

Any other name is that of one resource, also when it holds a star.
"""

from dataclasses import dataclass

from xdscore.names import XDSTP

Place = tuple[str, str]
"""Where a resource is: its directory, which ends with a slash, and the context parameters of its name."""

_GLOB = "/*"
# "xdstp:", "", authority, type, and at least "*".
_GLOB_SEGMENTS = 5


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob collection: every resource directly in `directory` (which ends with a slash) with exactly this `context`.

    `name` is what a client asks for: the name of a member with a star in place of its last part.
    """

    name: str
    directory: str
    context: str

    @property
    def place(self) -> Place:
        """The directory and context that all members share."""
        return self.directory, self.context

    def contains(self, name: str) -> bool:
        """Whether a resource of this canonical name is a member: directly in the directory, with the same context (H2,
        H3).
        """
        return place_of(name) == self.place


def place_of(name: str) -> Place | None:
    """The directory and context of a canonical name, by which its collection is found; None when it cannot be a member
    of any.
    """
    if not name.startswith(XDSTP):
        return None
    path, _, context = name.partition("?")
    directory, slash, own = path.rpartition("/")
    return (directory + slash, context) if slash and own not in {"", "*"} else None


def glob_of(name: str) -> Glob | None:
    """The collection that a canonical name asks for; None when it names a single resource."""
    if not name.startswith(XDSTP):
        return None
    path, _, context = name.partition("?")
    if not path.endswith(_GLOB) or path.count("/") < _GLOB_SEGMENTS - 1:
        return None
    return Glob(name, path.removesuffix("*"), context)

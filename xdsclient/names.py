"""Which servers a resource name belongs to (gRFC A47): an authority's, or those of old-style names."""

from dataclasses import dataclass

from xdscore.names import XDSTP, canonical, name_problem
from xdscore.resource_types import ResourceType

# A78, `grpc.xds.authority`: what old-style names have instead of an authority.
OLD_STYLE_AUTHORITY = "#old"


class UnwatchableNameError(ValueError):
    """The name cannot be watched; the text says why."""


@dataclass(frozen=True, slots=True)
class WatchedName:
    """A name in the form in which it is asked for, and its authority."""

    text: str
    authority: str


def watched_name(name: str, kind: ResourceType) -> WatchedName:
    """The name as it is asked for: an xdstp name has its context parameters sorted (xRFC TP1).

    Raises UnwatchableNameError.
    """
    problem = name_problem(name)
    if problem:
        raise UnwatchableNameError(f"The name {problem}")
    if not name.startswith(XDSTP):
        return WatchedName(name, OLD_STYLE_AUTHORITY)
    authority, slash, path = name.removeprefix(XDSTP).removeprefix("//").partition("/")
    named_type = path.partition("/")[0]
    if not name.startswith(XDSTP + "//") or not slash or not path.partition("/")[2]:
        raise UnwatchableNameError(f"'{name}' is not an xdstp name; one is xdstp://AUTHORITY/{kind.message}/ID")
    if named_type != kind.message:
        raise UnwatchableNameError(f"'{name}' names a {named_type}, but a {kind.message} is asked for")
    return WatchedName(canonical(name), authority)

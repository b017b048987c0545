"""Which servers a resource name belongs to (gRFC A47): an authority's, or those of old-style names."""

from dataclasses import dataclass
from urllib.parse import quote

from xdsclient.bootstrap import Bootstrap
from xdsclient.engine.collection import WILDCARD, is_collection
from xdscore.names import XDSTP, canonical, name_problem, xdstp_authority
from xdscore.resource_types import LISTENER, RESOURCE_TYPES, ResourceType

# A78, `grpc.xds.authority`: what old-style names have instead of an authority.
OLD_STYLE_AUTHORITY = "#old"
_WITH_WILDCARD = ", ".join(kind.title for kind in RESOURCE_TYPES if kind.wildcard)


class UnwatchableNameError(ValueError):
    """The name cannot be watched; the text says why."""


@dataclass(frozen=True, slots=True)
class WatchedName:
    """A name as requests contain it, and its xdstp authority ("#old" for a name without one)."""

    text: str
    authority: str


def watched_name(name: str, kind: ResourceType) -> WatchedName:
    """The name as requests contain it: in an xdstp name the context parameters are sorted (xRFC TP1).

    Raises UnwatchableNameError for a name that cannot be asked for.
    """
    wanted = _named(name, kind)
    if is_collection(kind, wanted.text):
        raise UnwatchableNameError(f"'{name}' names a collection, which watch_collection and follow_collection take")
    return wanted


def watched_collection(name: str, kind: ResourceType) -> WatchedName:
    """The name of a glob collection (xRFC TP1) or a wildcard as requests contain it. A wildcard counts among names
    without an xdstp authority.

    Raises UnwatchableNameError for anything else.
    """
    if name == WILDCARD and kind.wildcard:
        return WatchedName(name, OLD_STYLE_AUTHORITY)
    if name == WILDCARD:
        raise UnwatchableNameError(f"there is no '*' of a {kind.message}: only {_WITH_WILDCARD} have it")
    wanted = _named(name, kind)
    if not is_collection(kind, wanted.text):
        example = f"xdstp://AUTHORITY/{kind.message}/DIRECTORY/*"
        raise UnwatchableNameError(f"'{name}' names one resource and no collection, as {example} does")
    return wanted


def authority_of(name: str) -> str:
    """The xdstp authority of a name in the cache, for metrics; "#old" for a name without one, as in A78."""
    return xdstp_authority(name) if name.startswith(XDSTP) else OLD_STYLE_AUTHORITY


def _named(name: str, kind: ResourceType) -> WatchedName:
    problem = name_problem(name)
    if problem:
        raise UnwatchableNameError(f"The name {problem}")
    if not name.startswith(XDSTP):
        return WatchedName(name, OLD_STYLE_AUTHORITY)
    authority, slash, path = name.removeprefix(XDSTP).removeprefix("//").partition("/")
    named_type = path.partition("/")[0]
    if not name.startswith(XDSTP + "//") or not slash or not path.partition("/")[2]:
        raise UnwatchableNameError(f"'{name}' is not an xdstp name; one is xdstp://AUTHORITY/{kind.message}/ID")
    if named_type == f"{kind.message}Collection":
        raise UnwatchableNameError(
            f"'{name}' names a list collection, which this client does not follow; watch its members by name, or the"
            f" glob collection xdstp://{authority}/{kind.message}/DIRECTORY/*"
        )
    if named_type != kind.message:
        raise UnwatchableNameError(f"'{name}' names a {named_type}, but a {kind.message} is asked for")
    return WatchedName(canonical(name), authority)


def listener_name(bootstrap: Bootstrap, target: str) -> tuple[str, str]:
    """The service that a target such as `xds:///pay` names, and the name of the listener to ask for (gRFC A47).

    The listener's name is made by the template of the target's authority, or else by the bootstrap's. Raises
    UnwatchableNameError for a target without a service or of an unknown authority.
    """
    path = target.removeprefix("xds:")
    authority = ""
    if path.startswith("//"):
        authority, _, path = path.removeprefix("//").partition("/")
    service = path.removeprefix("/")
    if not service:
        raise UnwatchableNameError(f"'{target}' names no service; a target is xds:///SERVICE")
    template = bootstrap.client_listener_template
    if authority:
        if authority not in bootstrap.authorities:
            raise UnwatchableNameError(f"the authority '{authority}' is not in the bootstrap")
        template = bootstrap.authorities[authority].client_listener_template
        template = template or f"{XDSTP}//{authority}/{LISTENER.message}/%s"
    # A47: what is put into an xdstp template is percent-encoded.
    shown = quote(service, safe="/:@!$&'()*+,;=-._~") if template.startswith(XDSTP) else service
    return service, template.replace("%s", shown)

"""What an Envoy says of itself: its `/config_dump?include_eds` as a `Word`. Pure.

Nothing of the dump but names, states, versions and texts of errors goes on: no content, and of what holds secrets not
even a hash. Shapes: envoy/admin/v3/config_dump.proto and config_dump_shared.proto, read with Envoy 1.40.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from xdscore.lazily import Lazily
from xdscore.names import name_problem
from xdscore.resource_types import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE, SCOPED_ROUTE, SECRET, ResourceType
from xdscore.said import Said, SaidSource, SaidState, Word
from xdsctl.exits import JsonObject, NoAnswerError
from xdsctl.output import harmless

if TYPE_CHECKING:
    from xdscore.schema import dumped
    from xdscore.schema.text import Tree
else:
    dumped = Lazily("xdscore.schema.dumped")

MAX_ERROR_CHARS: Final = 2_000
MAX_VERSION_CHARS: Final = 256
_ADMIN: Final = "type.googleapis.com/envoy.admin.v3."


def word_of_dump(dump: object, *, node_id: str = "") -> Word:
    """Everything that an Envoy says it has, from this config dump. `node_id`, if given, replaces the one in the dump's
    bootstrap.

    Raises NoAnswerError for anything that is no config dump.
    """
    configs = dump.get("configs") if isinstance(dump, dict) else None
    if not isinstance(configs, list):
        raise NoAnswerError("The answer is no config_dump of Envoy. Is this the address of its admin interface?")
    types: set[str] = set()
    names: list[Said] = []
    for section in configs:
        if not isinstance(section, dict):
            continue
        message = str(section.get("@type", "")).removeprefix(_ADMIN)
        if message == "BootstrapConfigDump":
            node_id = node_id or str(_in(section, "bootstrap", "node").get("id", ""))
        elif message in _SECTIONS:
            kind, read = _SECTIONS[message]
            types.add(kind.word)
            names.extend(read(section))
    return Word(SaidSource.ENVOY_ADMIN, node_id, frozenset(types), named(names))


def named(names: Iterable[Said]) -> tuple[Said, ...]:
    """The given resources, without those whose name cannot be that of a resource."""
    return tuple(each for each in names if not name_problem(each.name))


def words(text: str, at_most: int = MAX_ERROR_CHARS) -> str:
    """A text that came from a data plane, cut to `at_most` characters and without any that a terminal or a parser would
    obey.
    """
    return "\n".join(map(harmless, text[:at_most].splitlines()))[:at_most]


def _clusters(section: JsonObject) -> Iterator[Said]:
    for each in _list(section, "dynamic_active_clusters"):
        yield from _named(CLUSTER, each, "cluster", SaidState.ACKED)
    for each in _list(section, "dynamic_warming_clusters"):
        yield from _named(CLUSTER, each, "cluster", SaidState.WARMING)
    for each in _list(section, "static_clusters"):
        yield from _named(CLUSTER, each, "cluster", SaidState.STATIC)


def _listeners(section: JsonObject) -> Iterator[Said]:
    for each in _list(section, "dynamic_listeners"):
        name, error = str(each.get("name", "")), _error(each)
        # What it refused stands beside what it goes on with, as gRPC's CSDS has it.
        in_use = SaidState.NACKED if error else SaidState.ACKED
        places = (
            ("active_state", in_use),
            ("warming_state", SaidState.WARMING),
            ("draining_state", SaidState.DRAINING),
        )
        for key, state in places:
            held = _in(each, key)
            if held:
                yield _said(LISTENER, name, state, held, "listener", error if state is SaidState.NACKED else "")
        if error and not _in(each, "active_state"):
            yield Said(LISTENER.word, name, SaidState.NACKED, error=error)
    for each in _list(section, "static_listeners"):
        yield from _named(LISTENER, each, "listener", SaidState.STATIC)


def _routes(section: JsonObject) -> Iterator[Said]:
    for each in _list(section, "dynamic_route_configs"):
        yield from _named(ROUTE, each, "route_config", SaidState.ACKED)


def _scoped_routes(section: JsonObject) -> Iterator[Said]:
    for scope in _list(section, "dynamic_scoped_route_configs"):
        for each in _list(scope, "scoped_route_configs"):
            entry = {"version_info": scope.get("version_info", ""), "scope": each}
            yield from _named(SCOPED_ROUTE, entry, "scope", SaidState.ACKED)


def _endpoints(section: JsonObject) -> Iterator[Said]:
    """The endpoint assignments of a dump, including those of static clusters, whose endpoints may come over xDS all the
    same. Envoy makes these messages from its hosts and gives them no version, so only the hosts can be compared.
    """
    for key in ("dynamic_endpoint_configs", "static_endpoint_configs"):
        for each in _list(section, key):
            tree = _in(each, "endpoint_config")
            content = dumped.any_of_dump(tree)
            digest = dumped.endpoints_digest(content) if content is not None else ""
            yield Said(ENDPOINT.word, dumped.name_in(ENDPOINT, tree), SaidState.ACKED, held=True, endpoints=digest)


def _secrets(section: JsonObject) -> Iterator[Said]:
    """The secrets of a dump. Envoy redacts them, so only that they are there can be compared. A secret that is warming
    was never received.
    """
    for each in _list(section, "dynamic_active_secrets"):
        version = words(str(each.get("version_info", "")), MAX_VERSION_CHARS)
        yield Said(SECRET.word, str(each.get("name", "")), SaidState.ACKED, held=True, version_info=version)
    for each in _list(section, "dynamic_warming_secrets"):
        yield Said(SECRET.word, str(each.get("name", "")), SaidState.REQUESTED)


def _extensions(section: JsonObject) -> Iterator[Said]:
    for each in _list(section, "ecds_filters"):
        yield from _named(EXTENSION, each, "ecds_filter", SaidState.ACKED)


_SECTIONS: Final[Mapping[str, tuple[ResourceType, Callable[[JsonObject], Iterator[Said]]]]] = {
    "ClustersConfigDump": (CLUSTER, _clusters),
    "ListenersConfigDump": (LISTENER, _listeners),
    "RoutesConfigDump": (ROUTE, _routes),
    "ScopedRoutesConfigDump": (SCOPED_ROUTE, _scoped_routes),
    "EndpointsConfigDump": (ENDPOINT, _endpoints),
    "SecretsConfigDump": (SECRET, _secrets),
    "EcdsConfigDump": (EXTENSION, _extensions),
}


def _named(kind: ResourceType, entry: JsonObject, key: str, state: SaidState) -> Iterator[Said]:
    """The resource of one entry of a dump; `key` is where its content stands, which has its name. Nothing for an entry
    without content.
    """
    content = _in(entry, key)
    if content:
        yield _said(kind, dumped.name_in(kind, content), state, entry, key, _error(entry))


def _said(kind: ResourceType, name: str, state: SaidState, entry: JsonObject, key: str, error: str) -> Said:
    content = dumped.any_of_dump(_in(entry, key))
    return Said(
        type=kind.word,
        name=name,
        state=state,
        held=True,
        version=dumped.version_of_content(content) if content is not None else "",
        version_info=words(str(entry.get("version_info", "")), MAX_VERSION_CHARS),
        error=error,
    )


def _error(entry: JsonObject) -> str:
    return words(str(_in(entry, "error_state").get("details", "")))


def _list(tree: JsonObject, key: str) -> list[JsonObject]:
    value = tree.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _in(tree: Mapping[str, Any], *keys: str) -> dict[str, Tree]:
    """The object that stands in `tree` under these keys, one inside the other; empty where there is none."""
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}

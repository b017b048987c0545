"""The shapes a file of resources may have: one, a list, a bootstrap, a config_dump, a response (interfaces.md 3).

Each shape is a function from a tree to its parts. Resources of a bootstrap are bare messages there, so the `@type` that
their place implies is added. Pure reshaping: whether a part is a sound resource is for `parse` to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdscore.findings import Finding
from xdscore.resource_types import CLUSTER, LISTENER, SECRET, TYPE_URL_PREFIX, ResourceType
from xdscore.schema.codes import (
    ENTRY_EMPTY,
    LISTENER_NAMED,
    NOT_A_MANIFEST,
    REMOVALS_SKIPPED,
    SECRET_REDACTED,
    SECTION_SKIPPED,
    SPELLED_LIST,
    STATIC_SKIPPED,
    WRONG_TYPE,
)
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.positions import Path
from xdscore.schema.spelling import camel
from xdscore.schema.text import Tree

WRAPPER = "envoy.service.discovery.v3.Resource"
_BOOTSTRAP = "envoy.config.bootstrap.v3.Bootstrap"
_CONFIG_DUMP = "envoy.admin.v3.ConfigDump"
_DISCOVERY_RESPONSE = "envoy.service.discovery.v3.DiscoveryResponse"
_DELTA_DISCOVERY_RESPONSE = "envoy.service.discovery.v3.DeltaDiscoveryResponse"
# The fields of a wrapper that say something about a resource; a delta response's `version` is the sender's own.
_WRAPPER_KEPT = frozenset({"name", "ttl", "resource", "aliases"})
_STATIC_TYPES: dict[str, ResourceType] = {"listeners": LISTENER, "clusters": CLUSTER, "secrets": SECRET}
RESPONSE_KEYS = frozenset(
    {
        "version_info", "versionInfo", "system_version_info", "systemVersionInfo", "resources", "canary", "type_url",
        "typeUrl", "nonce", "control_plane", "controlPlane", "removed_resources", "removedResources", "@type",
    }
)  # fmt: skip
"""The fields of a DiscoveryResponse and a DeltaDiscoveryResponse, by which one without `@type` is known."""


@dataclass(frozen=True, slots=True)
class Part:
    """One resource found in a document: its tree, its path in the document, and what is to be said of how it stands
    there.
    """

    tree: dict[str, Tree]
    path: Path
    notes: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding about a file that holds several resources, at this path in it."""

    finding: Finding
    path: Path


Found = Iterator[Part | Remark]


def parts_of(tree: Tree) -> Found:
    """Every resource of a document, in its order. A list may hold whole dumps and bootstraps, as when a folder is sent
    as one body.
    """
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            found = _container(item) if isinstance(item, dict) else _one(item, ())
            yield from (replace(each, path=(index, *each.path)) for each in found)
    elif isinstance(tree, dict):
        yield from _container(tree)
    else:
        yield from _one(tree, ())


def _container(tree: dict[str, Tree]) -> Found:
    message = _message_of(tree)
    if message == _BOOTSTRAP or (not message and ("static_resources" in tree or "staticResources" in tree)):
        yield from _bootstrap(tree)
    elif message == _CONFIG_DUMP or (not message and isinstance(tree.get("configs"), list)):
        yield from _config_dump(tree)
    elif message in (_DISCOVERY_RESPONSE, _DELTA_DISCOVERY_RESPONSE) or (not message and _is_response(tree)):
        yield from _response(tree)
    elif not message and tree and tree.keys() <= _STATIC_TYPES.keys():
        yield from _static_resources(tree, ())
    else:
        yield Part(tree, ())


def _message_of(tree: dict[str, Tree]) -> str:
    url = tree.get("@type")
    return url.removeprefix(TYPE_URL_PREFIX) if isinstance(url, str) else ""


def _is_response(tree: dict[str, Tree]) -> bool:
    return "resources" in tree and tree.keys() <= RESPONSE_KEYS


def _one(item: Tree, path: Path) -> Found:
    if isinstance(item, dict):
        yield Part(item, path)
    else:
        yield Remark(NOT_A_MANIFEST.finding("", what=kind_of(item).capitalize()), path)


def _list(
    tree: dict[str, Tree], key: str, path: Path, *, takes_one: bool = False
) -> Iterator[tuple[Tree, Path] | Remark]:
    """The items of the list under `key`, spelled with underscores or in lowerCamelCase; none when there is no such
    key. `takes_one`: its only item may stand there without the list.
    """
    for spelling in (key, camel(key)):
        value = tree.get(spelling)
        if value is None:
            continue
        if isinstance(value, list):
            yield from ((item, (*path, spelling, index)) for index, item in enumerate(value))
        elif isinstance(value, dict) and takes_one:
            yield value, (*path, spelling)
        else:
            found = WRONG_TYPE.finding("", field=spelling, wanted="a list", given=kind_of(value))
            yield Remark(found, (*path, spelling))
        return


def _bootstrap(tree: dict[str, Tree]) -> Found:
    """The static resources of a bootstrap, and a remark about each other section: nothing is left out unsaid."""
    static = "static_resources" if "static_resources" in tree else "staticResources"
    for key, value in tree.items():
        if key == static and isinstance(value, dict):
            yield from _static_resources(value, (key,))
        elif key == static and value is not None:
            yield Remark(WRONG_TYPE.finding("", field=key, wanted="an object", given=kind_of(value)), (key,))
        elif key not in (static, "@type"):
            yield Remark(SECTION_SKIPPED.finding("", section=key), (key,))


def _static_resources(resources: dict[str, Tree], path: Path) -> Found:
    for key in resources:
        kind = _STATIC_TYPES.get(key)
        if kind is None:
            yield Remark(SECTION_SKIPPED.finding("", section=key), (*path, key))
            continue
        for entry in _list(resources, key, path, takes_one=True):
            if isinstance(entry, Remark):
                yield entry
            elif isinstance(entry[0], dict):
                yield _static(kind, entry[0], entry[1])
            else:
                yield from _one(*entry)


def _static(kind: ResourceType, tree: dict[str, Tree], path: Path) -> Part:
    """A resource of a bootstrap, which says its type by its place, and of a listener need not say its name."""
    notes = () if isinstance(path[-1], int) else (SPELLED_LIST.finding("", field=path[-1]),)
    name = _name_by_address(tree) if kind is LISTENER and not tree.get("name") else ""
    if not name:
        return Part({"@type": kind.url, **tree}, path, notes)
    return Part({"@type": kind.url, **tree, "name": name}, path, (*notes, LISTENER_NAMED.finding("", name=name)))


def _name_by_address(listener: dict[str, Tree]) -> str:
    """The name of a listener that has none: its address, as Envoy writes it. Empty where it has no address that can be
    read.
    """
    address = listener.get("address")
    if not isinstance(address, dict):
        return ""
    pipe, socket = address.get("pipe"), address.get("socket_address", address.get("socketAddress"))
    if isinstance(pipe, dict):
        return str(pipe.get("path", ""))
    if not isinstance(socket, dict) or not isinstance(socket.get("address"), str):
        return ""
    host = str(socket["address"])
    port = socket.get("port_value", socket.get("portValue", 0))
    # TCP and UDP share an address; neither may take the other's name.
    protocol = "/udp" if str(socket.get("protocol", "")).upper() in {"UDP", "1"} else ""
    return f"{f'[{host}]' if ':' in host else host}:{port}{protocol}"


def _response(tree: dict[str, Tree]) -> Found:
    """The resources of a discovery response. A SotW response holds Anys; a delta response holds Resource wrappers, to
    which `@type` is added and whose versions, given by another server, are left out.
    """
    for entry in _list(tree, "resources", ()):
        if isinstance(entry, Remark):
            yield entry
            continue
        item, path = entry
        if isinstance(item, dict) and "@type" not in item and isinstance(item.get("resource"), dict):
            kept = {key: value for key, value in item.items() if key in _WRAPPER_KEPT}
            yield Part({"@type": TYPE_URL_PREFIX + WRAPPER, **kept}, path)
        else:
            yield from _one(item, path)
    for key in ("removed_resources", "removedResources"):
        count = _count(tree, key)
        if key in tree and count:
            yield Remark(REMOVALS_SKIPPED.finding("", count=count), (key,))


# Sections of a config_dump: message -> (lists of resources that came over xDS, path to the Any inside each item).
# Static resources belong to the proxy's bootstrap and would be sent to it a second time.
_DUMP_SECTIONS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "envoy.admin.v3.ListenersConfigDump": (("dynamic_listeners", ("active_state", "listener")),),
    "envoy.admin.v3.ClustersConfigDump": (
        ("dynamic_active_clusters", ("cluster",)),
        ("dynamic_warming_clusters", ("cluster",)),
    ),
    "envoy.admin.v3.RoutesConfigDump": (("dynamic_route_configs", ("route_config",)),),
    "envoy.admin.v3.EndpointsConfigDump": (("dynamic_endpoint_configs", ("endpoint_config",)),),
    "envoy.admin.v3.EcdsConfigDump": (("ecds_filters", ("ecds_filter",)),),
}
_ENDPOINTS_SECTION = "envoy.admin.v3.EndpointsConfigDump"
_DUMP_STATIC = ("static_listeners", "static_clusters", "static_route_configs", "static_endpoint_configs")
_SCOPES_SECTION = "envoy.admin.v3.ScopedRoutesConfigDump"
_SECRETS_SECTION = "envoy.admin.v3.SecretsConfigDump"
_SECRET_LISTS = ("static_secrets", "dynamic_active_secrets", "dynamic_warming_secrets")


def _config_dump(tree: dict[str, Tree]) -> Found:
    for entry in _list(tree, "configs", ()):
        if isinstance(entry, Remark):
            yield entry
        elif isinstance(entry[0], dict):
            yield from _dump_section(*entry)
        else:
            yield from _one(*entry)


def _dump_section(section: Tree, path: Path) -> Found:
    if not isinstance(section, dict):
        return
    message = _message_of(section)
    if message == _SECRETS_SECTION:
        count = sum(_count(section, key) for key in _SECRET_LISTS)
        if count:
            yield Remark(SECRET_REDACTED.finding("", count=count), path)
    elif message == _SCOPES_SECTION:
        yield from _scopes(section, path)
    elif message in _DUMP_SECTIONS:
        for key, inside in _DUMP_SECTIONS[message]:
            found = _inner(_list(section, key, path), inside, key)
            yield from map(_as_written, found) if message == _ENDPOINTS_SECTION else found
    else:
        yield Remark(SECTION_SKIPPED.finding("", section=message or "without @type"), path)
    for key in _DUMP_STATIC:
        count = _count(section, key)
        if count:
            yield Remark(STATIC_SKIPPED.finding("", count=count, section=key), path)


def _scopes(section: dict[str, Tree], path: Path) -> Found:
    for entry in _list(section, "dynamic_scoped_route_configs", path):
        if isinstance(entry, Remark):
            yield entry
        elif isinstance(entry[0], dict):
            yield from _inner(_list(entry[0], "scoped_route_configs", entry[1]), (), "scoped_route_configs")


def _inner(entries: Iterator[tuple[Tree, Path] | Remark], inside: tuple[str, ...], section: str) -> Found:
    """The Any that each entry of `section` has under the keys `inside`. Of one without it (a listener still warming or
    refused) there is a remark.
    """
    for entry in entries:
        if isinstance(entry, Remark):
            yield entry
            continue
        whole, place = item, path = entry
        for key in inside:
            spelling = key if isinstance(item, dict) and key in item else camel(key)
            item, path = item.get(spelling) if isinstance(item, dict) else None, (*path, spelling)
        if isinstance(item, dict):
            yield Part(item, path)
        else:
            name = whole.get("name", "") if isinstance(whole, dict) else ""
            yield Remark(ENTRY_EMPTY.finding("", name=name, section=section), place)


# Envoy makes up this part of a dump from its hosts and fills in its defaults, which nobody wrote and which mean what
# their absence means (admin/config_dump_handler.cc, Envoy 1.40).
_FILLED_IN_POLICY: Tree = {"overprovisioning_factor": 140}
_FILLED_IN: dict[str, tuple[Tree, ...]] = {"health_status": ("HEALTHY",), "load_balancing_weight": (1,)}


def _as_written(part: Part | Remark) -> Part | Remark:
    """A resource of a dump without the defaults that Envoy filled into endpoints; anything else as it is."""
    if isinstance(part, Remark):
        return part
    tree = {key: value for key, value in part.tree.items() if (key, value) != ("policy", _FILLED_IN_POLICY)}
    localities = tree.get("endpoints")
    if isinstance(localities, list):
        tree["endpoints"] = [_locality_as_written(each) for each in localities]
    return Part(tree, part.path)


def _locality_as_written(locality: Tree) -> Tree:
    hosts = locality.get("lb_endpoints") if isinstance(locality, dict) else None
    if not isinstance(locality, dict) or not isinstance(hosts, list):
        return locality
    return {**locality, "lb_endpoints": [_host_as_written(host) for host in hosts]}


def _host_as_written(host: Tree) -> Tree:
    if not isinstance(host, dict):
        return host
    kept = {key: value for key, value in host.items() if value not in _FILLED_IN.get(key, ()) and value != {}}
    endpoint = kept.get("endpoint")
    if isinstance(endpoint, dict) and endpoint.get("health_check_config") == {}:
        kept["endpoint"] = {key: value for key, value in endpoint.items() if key != "health_check_config"}
    return kept


def _count(section: dict[str, Tree], key: str) -> int:
    value = section.get(key, section.get(camel(key)))
    return len(value) if isinstance(value, list) else 0

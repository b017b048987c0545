"""What proxies refuse although each field by itself keeps its rule: fields that do not go together, formats, names.

    said         what a rule says
    clusters, upstreams, listeners, http, filters, sockets, sources
                 rules of fields that contradict each other
    order        which filter is the last of its chain
    headers, formats, durations            rules of what many messages have, each alike

Only what a real Envoy 1.40 refuses stands here (`make differential` asks it), and nothing that another client could
make sense of. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from xdscore.findings import Severity
from xdscore.schema.codes import ALIKE, COMMAND_UNKNOWN, DOMAIN_TWICE, FORMAT, NO_VALUE, UNCHANGEABLE
from xdscore.schema.positions import Path
from xdscore.schema.relations import (
    clusters,
    durations,
    filters,
    formats,
    headers,
    http,
    listeners,
    sockets,
    sources,
    upstreams,
)
from xdscore.schema.relations.said import Rule, Said
from xdscore.schema.walk import AnyMessage

__all__ = ["Said", "relations_in"]


def _by_message() -> Mapping[str, tuple[Rule, ...]]:
    found: dict[str, tuple[Rule, ...]] = {}
    for module in (clusters, upstreams, listeners, http, filters, sockets, sources, headers, formats, durations):
        for name, rule in module.RULES.items():
            found[name] = (*found.get(name, ()), rule)
    return found


_RULES: Final = _by_message()
# Of what an API listener holds, gRPC clients look at these messages only, and there not at what these codes say.
_GRPC_READS: Final = frozenset({listeners.MANAGER, *http.GRPC_READS})
_NOT_FOR_GRPC: Final = frozenset({ALIKE, DOMAIN_TWICE, FORMAT, NO_VALUE, UNCHANGEABLE})


def relations_in(message: AnyMessage, path: Path, resource: AnyMessage) -> Iterator[Said]:
    """What is to be said of `message`, which is found at `path` in `resource`, with places in that resource. The
    messages inside it are not looked at.
    """
    name = message.DESCRIPTOR.full_name
    for rule in (*_RULES.get(name, ()), *_of_its_place(name, path, resource)):
        for said in rule(message):
            told = said.below(path)
            if path[:1] == ("api_listener",) and said.code is COMMAND_UNKNOWN:
                continue  # gRPC reads no formats, and a policy would make an error of a warning
            if path[:1] == ("api_listener",) and (name not in _GRPC_READS or said.code in _NOT_FOR_GRPC):
                told = replace(told, severity=Severity.WARNING)
            yield told


def _of_its_place(name: str, path: Path, resource: AnyMessage) -> Iterator[Rule]:
    """The rules of a message that depend on where it stands."""
    if path == ():
        yield from http.ALONE.get(name, ())
    if name == listeners.MANAGER and resource.DESCRIPTOR.full_name == listeners.LISTENER and path[0] != "api_listener":
        yield partial(listeners.managed, listener=resource)

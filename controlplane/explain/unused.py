"""What a client acknowledged and does not use yet, as far as the protocol shows it (truth.md H5). Pure.

Acknowledged is not applied (envoyproxy/envoy#39891, #46550). But who uses a listener asks for its routes, who uses a
cluster for its endpoints, and both for their secrets: by what a client did not ask for it is known what it waits with.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Final

from controlplane.explain.values import Asked
from xdscore.client_kinds import ClientFamily
from xdscore.names import canonical
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET
from xdscore.snapshot import EntryKey

ANSWER_WITHIN: Final = timedelta(seconds=30)
"""So long after its ACK a client is expected to have asked for what it needs."""
USERS: Final = frozenset({LISTENER.word, CLUSTER.word})
"""The types of resources that a client uses only once it asked for others."""
_FOLLOW: Final = frozenset({ROUTE.word, ENDPOINT.word})
# gRPC has its certificates from providers of its own bootstrap, and asks for no secrets.
_FOLLOW_OF_ENVOY: Final = _FOLLOW | {SECRET.word}
_SHOWN: Final = 3


def not_asked_for(
    needed: Mapping[EntryKey, Collection[EntryKey]],
    asked: Mapping[str, Collection[Asked]],
    family: ClientFamily,
) -> Mapping[EntryKey, tuple[EntryKey, ...]]:
    """Of each resource that a client acknowledged, what it refers to (`needed`) and the client did not ask for; without
    resources of which nothing is missing. `asked`: the client's subscriptions, by type.
    """
    follow = _FOLLOW_OF_ENVOY if family is ClientFamily.ENVOY else _FOLLOW
    found = {}
    for key, others in needed.items():
        missing = sorted(each for each in others if each[0] in follow and not _covered(each, asked.get(each[0], ())))
        if missing:
            found[key] = tuple(missing)
    return found


def _covered(key: EntryKey, asked: Iterable[Asked]) -> bool:
    return any(each.covers(canonical(key[1])) for each in asked)


def unused_sentence(missing: Collection[EntryKey]) -> str:
    """The sentence that says that a client has something and does not use it; `missing`: what it did not ask for."""
    named = [f"{word} '{name}'" for word, name in sorted(missing)]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return f"It has it and does not use it yet: it has not asked for {', '.join(named[:_SHOWN])}{more}."

"""Gathers what a client has of everything it asks for: the page of a client."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.conf import settings

from controlplane.catalog.selectors import resource_names, revision_numbers
from controlplane.clients.selectors import (
    ClientSummary,
    NackView,
    SubscriptionView,
    client_nacks,
    client_subscriptions,
)
from controlplane.config.loading import Config
from controlplane.explain.delivery import Delivery, NameKnown, delivery_of
from controlplane.explain.selectors import asked_of, refusal_of
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Serve, decide
from xdscore.errors import error_of
from xdscore.names import canonical
from xdscore.resource_types import ResourceType, by_word
from xdscore.snapshot import EntryKey

MAX_NAMES: Final = 100
"""The most names of one type that are shown; more are counted. Explain answers for any."""
_MAX_NACKS: Final = 50


@dataclass(frozen=True, slots=True)
class TypeDeliveries:
    """The subscription of an open stream to one type, and what the client has of its names. `names` is how many names
    it asks for; of a wildcard, `deliveries` shows the first names that the client may read, and `more` says whether
    there are others.
    """

    kind: ResourceType
    subscription: SubscriptionView
    names: int
    deliveries: tuple[Delivery, ...]
    more: bool


def client_deliveries(*, client: ClientSummary) -> tuple[TypeDeliveries, ...]:
    """The subscriptions of a client's open streams, and what it has of each name: at most 100 of each type.

    A bounded number of queries, whatever the client asks for: one for each type of which it wants all, and a dozen.
    """
    subscriptions = client_subscriptions(public_id=client.id)
    wanted = [_names(client.environment, each) for each in subscriptions]
    keys = {(each.type, canonical(name)) for each, names in zip(subscriptions, wanted, strict=True) for name in names}
    decisions = _decisions(client, keys)
    numbers = revision_numbers(
        environment_key=client.environment,
        versions={key: found.content.version for key, found in decisions.items() if isinstance(found, Serve)},
    )
    nacks = client_nacks(public_id=client.id, limit=_MAX_NACKS) if subscriptions else ()
    known = {key: _known(client.environment, key, decisions[key], numbers.get(key, 0), nacks) for key in keys}
    return tuple(_of_type(each, names, known) for each, names in zip(subscriptions, wanted, strict=True))


def _names(environment: str, subscription: SubscriptionView) -> Sequence[str]:
    """The names to look at, one more than are shown: those that the subscription asks for or, of a wildcard, those that
    exist.
    """
    asked = sorted(subscription.names)
    if not subscription.wildcard:
        return asked[: MAX_NAMES + 1]
    there = resource_names(environment_key=environment, kind=by_word[subscription.type], limit=MAX_NAMES + 1)
    return tuple(islice(dict.fromkeys((*asked, *there)), MAX_NAMES + 1))


def _decisions(client: ClientSummary, keys: set[EntryKey]) -> dict[EntryKey, Decision]:
    snapshot = snapshot_of_names(environment_key=client.environment, keys=keys)
    audience = Audience(client.environment) if snapshot is None else snapshot.audience(client.facts)
    return {(word, name): decide(audience, by_word[word], name, snapshot) for word, name in keys}


def _known(environment: str, key: EntryKey, decision: Decision, number: int, nacks: Sequence[NackView]) -> NameKnown:
    word, name = key
    config: Config = settings.PARLEY
    error = error_of(decision, kind=by_word[word], name=name, environment=environment, public_url=config.public_url)
    told = error.text if error is not None else ""
    return NameKnown(word, name, decision, number, told, refusal_of(word, name, decision, nacks))


def _of_type(subscription: SubscriptionView, names: Sequence[str], known: dict[EntryKey, NameKnown]) -> TypeDeliveries:
    asked = asked_of(subscription)
    explicit = frozenset(subscription.names)
    found = []
    for name in names:
        each = known[subscription.type, canonical(name)]
        # Of "everything", what it may not read or what is not there is no part, and nothing is said of it (TP3).
        if name in explicit or isinstance(each.decision, Serve):
            found.append(delivery_of(each, asked))
    more = len(names) > MAX_NAMES
    return TypeDeliveries(
        by_word[subscription.type], subscription, len(subscription.names), tuple(found[:MAX_NAMES]), more
    )

"""Answers of many resources at once how many connected clients ask for each, and how many acknowledged it.

Derived from subscriptions, which are kept per type (resolutions part 5): a client counts as running a resource when its
last answer to that type was an ACK. Two queries for a page of resources, however many clients there are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import Count

from controlplane.clients.facts import SubscriptionState, unpack_names
from controlplane.clients.models import NameSet, Subscription

Key = tuple[str, str]
"""(type word, name)."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """`asking` clients ask for it; of them `running` acknowledged the newest they were sent, and `nacked` refused."""

    asking: int = 0
    running: int = 0
    nacked: int = 0

    def plus(self, state: SubscriptionState, count: int) -> "Coverage":
        """With so many clients in this state."""
        return Coverage(
            self.asking + count,
            self.running + (count if state is SubscriptionState.ACKED else 0),
            self.nacked + (count if state is SubscriptionState.NACKED else 0),
        )


def coverage_of(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, Coverage]:
    """The coverage of each of these resources."""
    found = dict.fromkeys(keys, Coverage())
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in={word for word, _ in keys}
    )
    grouped = list(
        rows.values_list("type", "wildcard", "name_set", "state").annotate(
            clients=Count("stream__client", distinct=True)
        )
    )
    sets = NameSet.objects.filter(pk__in={name_set for _, wildcard, name_set, _, _ in grouped if not wildcard})
    names = {pk: frozenset(unpack_names(bytes(packed))) for pk, packed in sets.values_list("pk", "names")}
    for word, wildcard, name_set, state, clients in grouped:
        for key in found:
            if key[0] == word and (wildcard or key[1] in names.get(name_set, frozenset())):
                found[key] = found[key].plus(SubscriptionState(state), clients)
    return found

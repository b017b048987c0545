"""Answers of many resources at once how many connected clients ask for each, and how many acknowledged it.

Subscriptions are kept per type (decisions part 5), so whether a client runs the newest revision of one resource is
read from two facts: it refused this very content (a NACK that suspects it), or it owes an answer to the type. A
response that was refused over another resource says nothing against this one, and an ACK of what stands in for refused
content nothing for it. Nor does an ACK say anything of a name that the access rules keep from the client: it is told
so in place of the resource. A bounded number of queries for a page of resources, however many clients there are.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from django.db.models import Count, Exists, OuterRef, QuerySet

from controlplane.clients.barriers import Barrier, Key, barrier_of
from controlplane.clients.facts import SubscriptionState, unpack_contents, unpack_names
from controlplane.clients.models import ContentList, Nack, NameSet, Stream, Subscription
from xdscore.access import Audience
from xdscore.environment_choice import ClientFacts

# (type word, wildcard, name set, state): what is equal for many subscriptions.
_Kind = tuple[str, bool, str, str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many clients have a resource: `asking` clients ask for it; of them `running` have the newest revision,
    `nacked` refused it, and `denied` ask by name for what they may not read. A wildcard does not ask for what the
    client may not read.
    """

    asking: int = 0
    running: int = 0
    nacked: int = 0
    denied: int = 0

    def plus(self, state: SubscriptionState, count: int) -> "Coverage":
        """The coverage with `count` more clients whose subscription to the type is in this state."""
        answered = state in {SubscriptionState.ACKED, SubscriptionState.NACKED}
        return replace(self, asking=self.asking + count, running=self.running + (count if answered else 0))

    def deny(self, state: SubscriptionState, count: int, *, wildcard: bool) -> "Coverage":
        """The coverage with `count` of its clients, whose subscriptions are in this state, counted as not allowed to
        read the resource.
        """
        less = self.plus(state, -count)
        return less if wildcard else replace(less, asking=self.asking, denied=self.denied + count)

    def less(self, refusing: int) -> "Coverage":
        """The coverage with so many of its clients counted as having refused the newest revision."""
        nacked = min(refusing, self.asking - self.denied)
        return replace(self, running=min(self.running, self.asking - self.denied - nacked), nacked=nacked)

    @property
    def unserved(self) -> "Coverage":
        """The coverage where the newest revision is not served, so that no client runs it."""
        return replace(self, running=0)


def coverage_of(*, environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, Coverage]:
    """The coverage of each of these resources, given with the version on the wire of its newest revision."""
    found = dict.fromkeys(versions, Coverage())
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in={word for word, _ in found}
    )
    barrier = barrier_of(environment_key=environment_key, keys=versions)
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
    for audience, (word, wildcard, name_set, state), clients in _by_audience(rows, barrier):
        for key in found:
            asked = key[0] == word and (wildcard or key[1] in names.get(name_set, frozenset()))
            if asked and barrier.keeps(audience, key):
                found[key] = found[key].deny(SubscriptionState(state), clients, wildcard=wildcard)
    refusing = _refusing(environment_key, versions)
    return {key: coverage.less(refusing.get(key, 0)) for key, coverage in found.items()}


def clients_refusing(*, clients: Collection[str], word: str, name: str, version: str) -> frozenset[str]:
    """The ids among `clients` of those that refused a response in which this content was a suspect. Two queries."""
    rows = list(Nack.objects.filter(client__in=clients, type=word).values_list("client", "suspects").distinct())
    contents = _contents({suspects for _, suspects in rows})
    return frozenset(client for client, suspects in rows if (name, version) in contents.get(suspects, ()))


def _by_audience(rows: QuerySet[Subscription], barrier: Barrier) -> Iterable[tuple[Audience, _Kind, int]]:
    """The number of clients of each audience with each kind of subscription; nothing where every client may read every
    name.
    """
    if barrier.open:
        return ()
    audiences: dict[str, Audience] = {}
    asked: set[tuple[str, _Kind]] = set()
    who = ("stream__client", "stream__client__identity", "stream__client__node_id", "stream__client__node_cluster")
    for client, identity, node_id, cluster, *kind in rows.values_list(*who, "type", "wildcard", "name_set", "state"):
        if client not in audiences:
            audiences[client] = barrier.audience(ClientFacts(identity, node_id, cluster))
        asked.add((client, (kind[0], kind[1], kind[2], kind[3])))
    counts = Counter((audiences[client], kind) for client, kind in asked)
    return [(audience, kind, clients) for (audience, kind), clients in counts.items()]


def _refusing(environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, int]:
    """The number of connected clients that refused each of these contents."""
    words = {word for word, _ in versions}
    here = Exists(Stream.objects.filter(client=OuterRef("client"), closed_at=None))
    grouped = list(
        Nack.objects.filter(here, client__environment__key=environment_key, type__in=words)
        .values_list("type", "suspects")
        .annotate(clients=Count("client", distinct=True))
    )
    contents = _contents({suspects for _, suspects, _ in grouped})
    found: dict[Key, int] = {}
    for word, suspects, clients in grouped:
        for name, version in contents.get(suspects, ()):
            if versions.get((word, name)) == version:
                # One client may refuse it in several responses: the largest number counts nobody twice.
                found[word, name] = max(clients, found.get((word, name), 0))
    return found


def _contents(lists: Collection[str]) -> Mapping[str, Collection[tuple[str, str]]]:
    """The (name, version) pairs of these stored lists, by the id of the list."""
    if not lists:
        return {}
    rows = ContentList.objects.filter(pk__in=lists).values_list("pk", "contents")
    return {pk: unpack_contents(bytes(packed)) for pk, packed in rows}

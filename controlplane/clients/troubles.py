"""Answers which connected clients refuse what is published now, and which are told that they may not read a name.

Neither can be read off their last answers: whoever refused content is given something older in its place and
acknowledges that, and whoever may not read a name is told so and acknowledges that (xRFC TP3). The published snapshot
decides here as it does for streams (architecture.md law 2), so the list of clients, its counters and filters, the front
page and a client's own page say the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from controlplane.clients.facts import SubscriptionState, unpack_contents, unpack_names
from controlplane.clients.models import ContentList, Nack, NameSet, Stream, Subscription
from controlplane.snapshots.selectors import snapshots_of_names
from xdscore.access import Audience, Effect
from xdscore.chunks import ChunkError
from xdscore.decision import Serve, decide
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.selectors import ClientFacts
from xdscore.snapshot import EntryKey, Snapshot
from xdscore.xdstp import glob_of

_WHO = ("client", "client__environment__key", "client__identity", "client__node_id", "client__node_cluster")


@dataclass(frozen=True, slots=True)
class Troubles:
    """Ids of connected clients. `refusing`: on a stream that is open they refused content that is published now, and
    acknowledged something since; `denied`: they ask by name for what they may not read, and hear so.
    """

    refusing: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()


def troubles_of(*, environment_keys: Collection[str], client: str = "") -> Troubles:
    """Of all connected clients of these environments, or of one. At most seven queries, however many there are.

    Where a snapshot cannot be read nobody is judged by it; whoever builds and serves it reports that.
    """
    refusals, suspects = _refusals(environment_keys, client)
    keys: dict[str, set[EntryKey]] = {key: set() for key in environment_keys}
    for who, word, contents in refusals:
        keys[who.environment].update((word, canonical(name)) for name, _ in suspects.get(contents, ()))
    try:
        snapshots = snapshots_of_names(keys=keys)
    except ChunkError:
        return Troubles()
    judges = {key: _Judge(snapshot) for key, snapshot in snapshots.items()}
    refusing = {
        who.client
        for who, word, contents in refusals
        if who.environment in judges and judges[who.environment].serves_any(who, word, suspects.get(contents, ()))
    }
    return Troubles(frozenset(refusing), _denied({key: each for key, each in judges.items() if each.denies}, client))


@dataclass(frozen=True, slots=True)
class _Who:
    """A client, as groups know it."""

    client: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str


_Refusal = tuple[_Who, str, str]
"""Who refused something of which type, and the list of what is suspected."""


@dataclass(slots=True)
class _Judge:
    """Decides for one environment, each question once."""

    snapshot: Snapshot
    _audiences: dict[str, Audience] = field(default_factory=dict)
    _known: dict[tuple[Audience, str, str], bool] = field(default_factory=dict)

    @property
    def denies(self) -> bool:
        """Whether anybody can be told that they may not read something."""
        access = self.snapshot.access
        return Effect.DENY in {access.default, *(rule.effect for rule in access.rules)}

    def serves_any(self, who: _Who, word: str, contents: Collection[tuple[str, str]]) -> bool:
        """Whether one of these (name, version) is what this client is to have now."""
        audience = self._audience(who)
        for name, version in contents:
            served = decide(audience, by_word[word], name, self.snapshot)
            if isinstance(served, Serve) and served.content.version == version:
                return True
        return False

    def denies_any(self, who: _Who, word: str, name_set: str, names: Collection[str]) -> bool:
        """Whether this client may not read one of these names, and hears so; a glob collection is no name."""
        audience = self._audience(who)
        key = (audience, word, name_set)
        if key not in self._known:
            verdicts = self.snapshot.access.permissions(audience, by_word[word])
            self._known[key] = any(
                verdicts.verdict(canonical(name)).effect is Effect.DENY for name in names if glob_of(name) is None
            )
        return self._known[key]

    def _audience(self, who: _Who) -> Audience:
        if who.client not in self._audiences:
            facts = ClientFacts(who.identity, who.node_id, who.node_cluster)
            self._audiences[who.client] = self.snapshot.access.audience(who.environment, facts)
        return self._audiences[who.client]


def _refusals(
    environment_keys: Collection[str], client: str
) -> tuple[list[_Refusal], Mapping[str, Collection[tuple[str, str]]]]:
    """What was refused on streams that are open, unless that was the last word; the lists by their ids. Two queries."""
    here = Exists(Stream.objects.filter(pk=OuterRef("stream"), closed_at=None))
    last_word = Exists(
        Subscription.objects.filter(
            stream=OuterRef("stream"), type=OuterRef("type"), state=SubscriptionState.NACKED.value
        )
    )
    rows = Nack.objects.filter(here, ~last_word, client__environment__key__in=list(environment_keys))
    if client:
        rows = rows.filter(client=client)
    found = [
        (_Who(*who), word, contents)
        for *who, word, contents in rows.order_by().values_list(*_WHO, "type", "suspects").distinct()
    ]
    if not found:
        return [], {}
    lists = ContentList.objects.filter(pk__in=rows.order_by().values("suspects").distinct())
    return found, {pk: unpack_contents(bytes(packed)) for pk, packed in lists.values_list("pk", "contents")}


def _denied(judges: Mapping[str, _Judge], client: str) -> frozenset[str]:
    """Who asks by name for what these rules keep from them. Two queries."""
    if not judges:
        return frozenset()
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key__in=list(judges), name_set__count__gt=0
    )
    if client:
        rows = rows.filter(stream__client=client)
    sets = NameSet.objects.filter(pk__in=rows.values("name_set").distinct())
    names = {pk: unpack_names(bytes(packed)) for pk, packed in sets.values_list("pk", "names")}
    found = set()
    for *columns, word, name_set in rows.values_list(*(f"stream__{each}" for each in _WHO), "type", "name_set"):
        who = _Who(*columns)
        if judges[who.environment].denies_any(who, word, name_set, names.get(name_set, ())):
            found.add(who.client)
    return frozenset(found)

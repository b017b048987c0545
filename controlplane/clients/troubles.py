"""Answers which connected clients refuse what is published now, and which are told that they may not read a name.

Neither can be read off their last answers: whoever refused content is given something older in its place and
acknowledges that, and whoever may not read a name is told so and acknowledges that (xRFC TP3). The published snapshot
decides here as it does for streams (architecture.md law 2), so the list of clients, its counters and filters, the front
page and a client's own page say the same.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

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

# In one query; where more sets of names matter, all rows are looked at.
_MAX_LISTED: Final = 500
_WHO = ("client", "client__environment__key", "client__identity", "client__node_id", "client__node_cluster")


@dataclass(frozen=True, slots=True)
class Troubles:
    """Ids of connected clients. `refusing`: on a stream that is open they refused content that is published now, and
    acknowledged something since; `denied`: they ask by name for what they may not read, and hear so.
    """

    refusing: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()


def troubles_of(*, environment_keys: Collection[str], client: str = "") -> Troubles:
    """Of all connected clients of these environments, or of one. At most nine queries, however many there are.

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


@dataclass
class _Judge:
    """Decides for one environment, each question once."""

    snapshot: Snapshot
    _audiences: dict[str, Audience] = field(default_factory=dict)
    _known: dict[tuple[Audience, str, str], bool] = field(default_factory=dict)
    _spoken_of: dict[EntryKey, bool] = field(default_factory=dict)

    @property
    def denies(self) -> bool:
        """Whether anybody can be told that they may not read something."""
        return self.snapshot.access.default is Effect.DENY or bool(self._denying)

    @cached_property
    def _denying(self) -> frozenset[int]:
        return frozenset(rule.number for rule in self.snapshot.access.rules if rule.effect is Effect.DENY)

    def deniable(self, word: str, names: Collection[str]) -> Collection[str]:
        """Those of these names that somebody may not read: of most names no such rule speaks."""
        if self.snapshot.access.default is Effect.DENY or by_word[word].secret:
            return names
        return {name for name in names if self._is_spoken_of((word, canonical(name)))}

    def _is_spoken_of(self, key: EntryKey) -> bool:
        if key not in self._spoken_of:
            row = self.snapshot.access.row(by_word[key[0]], key[1])
            self._spoken_of[key] = not self._denying.isdisjoint(row)
        return self._spoken_of[key]

    def serves_any(self, who: _Who, word: str, contents: Collection[tuple[str, str]]) -> bool:
        """Whether one of these (name, version) is what this client is to have now."""
        kind = by_word[word]
        published = self.snapshot.type_state(kind).served
        current = {
            name
            for name, version in contents
            if (entry := published.get(canonical(name))) is not None and entry.content.version == version
        }
        # What everybody may read needs no look at whoever refused it.
        deniable = self.deniable(word, current)
        return len(deniable) < len(current) or any(
            isinstance(decide(self._audience(who), kind, name, self.snapshot), Serve) for name in deniable
        )

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
    """Who asks by name for what these rules keep from them. At most three queries.

    First of each set of names, of which thousands of clients have a few hundred; then of who has one that matters.
    """
    if not judges:
        return frozenset()
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key__in=list(judges), name_set__count__gt=0
    )
    if client:
        rows = rows.filter(stream__client=client)
    sets = NameSet.objects.filter(pk__in=rows.order_by().values("name_set").distinct())
    names = {pk: unpack_names(bytes(packed)) for pk, packed in sets.values_list("pk", "names")}
    asked = rows.order_by().values_list("stream__client__environment__key", "type", "name_set").distinct()
    questions = [(environment, word, name_set) for environment, word, name_set in asked if name_set in names]
    together: dict[tuple[str, str], set[str]] = defaultdict(set)
    for environment, word, name_set in questions:
        together[environment, word].update(names[name_set])
    deniable = {key: frozenset(judges[key[0]].deniable(key[1], asked_for)) for key, asked_for in together.items()}
    doubtful = {
        (environment, word, name_set)
        for environment, word, name_set in questions
        if not deniable[environment, word].isdisjoint(names[name_set])
    }
    if not doubtful:
        return frozenset()
    if len(doubtful) <= _MAX_LISTED:
        rows = rows.filter(name_set__in=sorted({name_set for _, _, name_set in doubtful}))
    found = set()
    for *columns, word, name_set in rows.values_list(*(f"stream__{each}" for each in _WHO), "type", "name_set"):
        who = _Who(*columns)
        if (who.environment, word, name_set) in doubtful and judges[who.environment].denies_any(
            who, word, name_set, names[name_set]
        ):
            found.add(who.client)
    return frozenset(found)

"""What a set of edits would mean to the clients that are connected: who would be sent something different, and who
would lose what they have. Pure.

A client is concerned by an edit when it asks for the name and may read it, by the rules as they are (architecture.md
law 2). Whether a build would serve what is put is not asked here: the answer holds where nothing is held back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controlplane.clients.asks import Asks, FleetAsks, names_covered
from xdscore.access import AccessTable, Audience, Effect
from xdscore.client_groups import GroupIndex
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import by_word

Key = tuple[str, str]
"""The word of a type, and a resource's name."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A resource that an edit would write or delete."""

    word: str
    name: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """A client, and the resources that it would lose."""

    client: str
    facts: ClientFacts
    resources: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class GroupImpact:
    """How many connected clients of one group there are, would be sent something different, and would lose something.
    An empty key stands for clients in no group.
    """

    key: str
    connected: int
    receive: int
    lose: int


@dataclass(frozen=True, slots=True)
class Impact:
    """How edits would affect connected clients.

    `connected`: how many clients there are; `receive`: how many of them would be sent something different.
    `losing`: those that would lose what they ask for and may read now.
    `groups`: the same counts for each client group with a client that would be sent something different.
    """

    connected: int
    receive: int
    losing: tuple[Loss, ...]
    groups: tuple[GroupImpact, ...]


def impact_of(edits: Sequence[Edited], *, environment: str, table: AccessTable, fleet: FleetAsks) -> Impact:
    """How the edits would affect the connected clients in `fleet`. `table`: the access rules of the environment."""
    clients = fleet.clients
    judge = _Judge(edits, table, fleet.names)
    audiences = {client: table.audience(environment, facts) for client, facts in clients.items()}
    concerned: dict[str, frozenset[Key]] = {}
    for each in fleet.asks:
        found, before = judge.concerned(audiences[each.client], each), concerned.get(each.client)
        # Most clients ask for something of one type alone, and share what equal ones are concerned by.
        concerned[each.client] = before | found if before else found
    deleted = {(edit.word, edit.name) for edit in edits if edit.deleted}
    receiving = {client for client, keys in concerned.items() if keys}
    losing = {client: tuple(sorted(lost)) for client, keys in concerned.items() if deleted and (lost := keys & deleted)}
    return Impact(
        connected=len(clients),
        receive=len(receiving),
        losing=tuple(Loss(client, clients[client], lost) for client, lost in sorted(losing.items())),
        groups=_groups(_members(table, clients, audiences), receiving, losing.keys()),
    )


class _Judge:
    """Finds out which edits concern a subscription, and remembers that for equal subscriptions."""

    def __init__(self, edits: Sequence[Edited], table: AccessTable, names: Mapping[str, Sequence[str]]) -> None:
        self._edited: dict[str, dict[str, str]] = {}
        for edit in edits:
            self._edited.setdefault(edit.word, {})[canonical(edit.name)] = edit.name
        self._table = table
        self._names = names
        self._covered: dict[tuple[str, bool, str], frozenset[str]] = {}
        self._known: dict[tuple[Audience, str, bool, str], frozenset[Key]] = {}
        # Which rules match an edited name is the same for everybody.
        self._rows = {
            word: {name: table.row(by_word[word], name) for name in edited} for word, edited in self._edited.items()
        }

    def concerned(self, audience: Audience, asks: Asks) -> frozenset[Key]:
        key = (audience, asks.word, asks.wildcard, asks.name_set)
        if key not in self._known:
            edited = self._edited.get(asks.word, {})
            may, rows = self._table.permissions(audience, by_word[asks.word]), self._rows.get(asks.word, {})
            self._known[key] = frozenset(
                (asks.word, edited[name]) for name in self._asked(asks) if may.of_row(rows[name]).effect is Effect.ALLOW
            )
        return self._known[key]

    def _asked(self, asks: Asks) -> frozenset[str]:
        key = (asks.word, asks.wildcard, asks.name_set)
        if key not in self._covered:
            wanted = self._edited.get(asks.word, {})
            self._covered[key] = names_covered(self._names[asks.name_set], wildcard=asks.wildcard, wanted=wanted)
        return self._covered[key]


def _members(
    table: AccessTable, clients: Mapping[str, ClientFacts], audiences: Mapping[str, Audience]
) -> Mapping[str, Sequence[str]]:
    """The keys of the groups of each client; an empty key where it is in none. `audiences` say it of some groups."""
    mentioned = {group.key for group in table.groups_mentioned}
    others = GroupIndex([group for group in table.groups if group.key not in mentioned])
    return {
        client: [*audiences[client].groups, *(group.key for group in others.of(facts))] or [""]
        for client, facts in clients.items()
    }


def _groups(
    members: Mapping[str, Sequence[str]], receiving: Iterable[str], losing: Iterable[str]
) -> tuple[GroupImpact, ...]:
    """The counts of each group, given the groups of each client."""

    def count(chosen: Iterable[str]) -> Counter[str]:
        return Counter(key for client in chosen for key in members[client])

    connected, receive, lose = count(members), count(receiving), count(losing)
    return tuple(GroupImpact(key, connected[key], receive[key], lose[key]) for key in sorted(receive))

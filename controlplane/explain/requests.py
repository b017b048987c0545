"""Where a request goes (truth.md Q1): by what one client was really given, or by what is published."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from controlplane.catalog.contents import addresses_of_versions
from controlplane.catalog.selectors import environment_get, resource_names
from controlplane.clients.clock import database_now
from controlplane.clients.holdings import HeldNow, client_has
from controlplane.clients.selectors import ClientSummary
from controlplane.explain.answers import answer_of
from controlplane.explain.client_side import client_named
from controlplane.explain.readings import Stored, readings_of
from controlplane.snapshots.history import snapshot_at, snapshot_of_names_at
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import AccessTable, Audience, Effect
from xdscore.codes import shown
from xdscore.decision import Serve, Undecided, decide
from xdscore.holdings import Holding, HoldingState
from xdscore.names import canonical
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, by_word
from xdscore.routing.placing import placed
from xdscore.routing.tracing import MAX_LISTENERS, traced
from xdscore.routing.values import Given, Key, Request, Rung, State, Traced
from xdscore.schema.yaml_lines import Lines

_TYPES: Final = frozenset({LISTENER.word, ROUTE.word, VIRTUAL_HOST.word, CLUSTER.word, ENDPOINT.word})
# Refuses nobody anything: what is published, whoever may read it.
_OPEN: Final = AccessTable(Effect.ALLOW, default_covers_secrets=True)
# Clients that are told so go on with what they have (xRFC TP3, INTERNAL), and that may be anything.
_MAY_KEEP: Final = frozenset({"XDS2105", "XDS2106"})
_MAX_NAMED: Final = 10
_OF_NO_REVISION: Final = Given(None, "What it has is of no revision known here.", known=False)


class _View(Protocol):
    """What somebody has of each resource."""

    def listeners(self) -> Sequence[str]:
        """The names of all listeners."""

    def given(self, keys: Collection[Key]) -> Mapping[Key, Given]:
        """What there is of each of these resources."""

    def said(self) -> str:
        """Whose view it is, in sentences, once all was looked up."""


def request_explained(
    *, environment_key: str, request: Request, listener: str = "", client: str = "", at: int | None = None
) -> Traced:
    """Where a request goes in an environment. `client`: by what this client has, or would be sent where it is not
    connected; its id or node id. Empty: by what is published. `at`: by the snapshot of this epoch. `listener`: the
    listener that the request comes to; empty: the one that has its port, or is its target.

    Raises NotFound for an unknown environment or client, or an epoch that there has not been, Gone for an epoch whose
    snapshot is not stored any more.
    """
    environment_get(key=environment_key)
    view = _view(environment_key, client, at)
    walk = traced(request, listener=listener, listeners=() if listener else view.listeners())
    wanted: Collection[Key] = next(walk)
    lines: dict[Key, Lines] = {}
    while True:
        given = view.given(wanted)
        lines |= {key: each.lines for key, each in given.items() if each.lines is not None}
        try:
            wanted = walk.send(given)
        except StopIteration as end:
            found: Traced = end.value
            return placed(replace(found, rungs=(Rung("view", State.OK, view.said()), *found.rungs)), lines)


def _view(environment_key: str, client: str, at: int | None) -> _View:
    if not client:
        return _Published(environment_key, None, at)
    known = client_named(environment=environment_key, client=client, keys=(environment_key,))
    if at is not None or not known.connected:
        return _Published(environment_key, known, at)
    return _Held(known, client_has(public_id=known.id, types=_TYPES, settled=database_now()))


@dataclass(slots=True)
class _Published:
    """What a snapshot has: for a client what it would be sent; without one, everything."""

    environment_key: str
    client: ClientSummary | None
    at: int | None
    epochs: set[int] = field(default_factory=set)

    def listeners(self) -> Sequence[str]:
        if self.at is None:
            return resource_names(environment_key=self.environment_key, kind=LISTENER, limit=MAX_LISTENERS + 1)
        past = snapshot_at(environment_key=self.environment_key, epoch=self.at)
        return sorted(name for word, name in past.served if word == LISTENER.word)

    def given(self, keys: Collection[Key]) -> Mapping[Key, Given]:
        named = {key: (key[0], canonical(key[1])) for key in keys}
        if self.at is None:
            snapshot = snapshot_of_names(environment_key=self.environment_key, keys=named.values())
        else:
            snapshot = snapshot_of_names_at(environment_key=self.environment_key, epoch=self.at, keys=named.values())
        audience = Audience(self.environment_key)
        if snapshot is not None:
            self.epochs.add(snapshot.epoch)
            if self.client is not None:
                audience = snapshot.audience(self.client.facts)
            else:
                snapshot = replace(snapshot, access=_OPEN)
        decisions = {key: decide(audience, by_word[key[0]], key[1], snapshot) for key in set(named.values())}
        contents = readings_of(
            [
                Stored(key, each.content.blob.hex(), each.content.ttl_ms)
                for key, each in decisions.items()
                if isinstance(each, Serve)
            ]
        )
        found: dict[Key, Given] = {}
        for asked, key in named.items():
            decision = decisions[key]
            if key in contents:
                found[asked] = contents[key]
                continue
            said = answer_of(decision, kind=by_word[key[0]], name=shown(key[1]), environment=self.environment_key)
            found[asked] = Given(None, said.sentence, known=not isinstance(decision, Serve | Undecided))
        return found

    def said(self) -> str:
        epoch = f" in epoch {', '.join(map(str, sorted(self.epochs)))}" if self.epochs else ""
        if self.client is None:
            return f"By what is published{epoch}, whoever may read it."
        node = shown(self.client.node_id)
        then = "would have been sent" if self.at is not None else "is not connected, and would be sent"
        return f"By what the client '{node}' {then}{epoch}."


@dataclass(slots=True)
class _Held:
    """What a connected client has, by its own word."""

    client: ClientSummary
    has: HeldNow
    behind: list[str] = field(default_factory=list)

    def listeners(self) -> Sequence[str]:
        return sorted(name for (word, name), each in self.has.names.items() if word == LISTENER.word and _version(each))

    def given(self, keys: Collection[Key]) -> Mapping[Key, Given]:
        named = {key: (key[0], canonical(key[1])) for key in keys}
        held = {key: each for key in named.values() if (each := self.has.names.get(key)) is not None}
        versions = {key: version for key, each in held.items() if (version := _version(each))}
        stored = addresses_of_versions(environment_key=self.client.environment, versions=versions)
        contents = readings_of([Stored(key, *each) for key, each in stored.items()])
        found: dict[Key, Given] = {}
        for asked, key in named.items():
            if key in versions:
                self._note(key, held[key])
                found[asked] = contents.get(key, _OF_NO_REVISION)
            else:
                found[asked] = self._lacking(key, held.get(key))
        return found

    def _note(self, key: Key, holding: Holding) -> None:
        if holding.state is not HoldingState.ACKED:
            self.behind.append(f"{key[0]} '{shown(key[1])}' ({holding.state.value})")

    def _lacking(self, key: Key, holding: Holding | None) -> Given:
        """Why a client has nothing of a resource, or why that is not known."""
        if holding is None:
            unsaid = key[0] in self.has.unsaid
            said = "its streams did not say yet what it has." if unsaid else "it does not have it, nor ask for it."
            return Given(None, f"Of '{shown(self.client.node_id)}': {said}", known=not unsaid)
        match holding.state:
            case HoldingState.NACKED:
                return Given(None, "It refused what it was sent, and has nothing else of it.")
            case HoldingState.ERROR_SENT | HoldingState.SILENT:
                said = f"It was told {holding.code}." if holding.state is HoldingState.ERROR_SENT else holding.message
                return Given(None, said or "There is nothing to send.", known=holding.code not in _MAY_KEEP)
            case HoldingState.REQUESTED:
                return Given(None, "It asks for it, and was sent nothing yet.")
            case HoldingState.SENT:
                return Given(None, "It was sent it, and did not answer yet.", known=False)
            case _:
                return Given(None, "What it has of it is not known.", known=False)

    def said(self) -> str:
        text = f"By what the client '{shown(self.client.node_id)}' has acknowledged."
        if not self.behind:
            return text
        more = f" and {len(self.behind) - _MAX_NAMED} more" if len(self.behind) > _MAX_NAMED else ""
        return f"{text} It goes on with an earlier revision of {', '.join(self.behind[:_MAX_NAMED])}{more}."


def _version(holding: Holding) -> str:
    """The version of the content that a client goes on with; empty where that is nothing, or not known."""
    return holding.version if holding.state is HoldingState.ACKED else holding.acked

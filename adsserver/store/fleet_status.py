"""From what clients have and what is published to the status of each resource of a client (protocol.md K1). Pure.

What a client has is stored by name (truth.md H4). Whether that is what is published is asked of the snapshot that this
server serves, whoever the client is: the stream tells each what it may have.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from adsserver.ports import FleetClient, ResourceStatus, SyncState
from controlplane.clients.fleet_selectors import StreamNack, StreamSubscription
from controlplane.clients.holding_words import SENTENCES, on_streams, worst
from xdscore.after_nack import after_nack, now_runs
from xdscore.client_kinds import ClientFamily, family_of
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding, HoldingState
from xdscore.names import canonical
from xdscore.resource_types import ResourceType, by_word
from xdscore.snapshot import Content, Snapshot

NO_SNAPSHOT: Final = "No snapshot of this environment was loaded yet, so this server knows no newer content."
NEWER: Final = "It acknowledged version {version}, and another one is published, which was not sent to it yet."
GONE: Final = "It acknowledged version {version}, and was not told yet that nothing of the name is published any more."

Show = Callable[[Content], bytes]
"""The content as it may be shown."""

_STATES: Final = {
    HoldingState.ACKED: SyncState.SYNCED,  # if it is what is published
    HoldingState.SENT: SyncState.STALE,
    HoldingState.NACKED: SyncState.ERROR,
    # CSDS has no value for "an error was sent" (clients.md 5).
    HoldingState.ERROR_SENT: SyncState.NOT_SENT,
    HoldingState.SILENT: SyncState.NOT_SENT,
    HoldingState.REQUESTED: SyncState.NOT_SENT,
    HoldingState.UNKNOWN: SyncState.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class _Had:
    """What a client has of one name on one of its streams, which asks for its type by `subscription`."""

    name: str
    holding: Holding
    subscription: StreamSubscription

    @property
    def nack(self) -> StreamNack | None:
        """The last NACK that may be about what the client refused of the name; None where none is stored."""
        refused = (canonical(self.name), self.holding.version)
        return next((each for each in reversed(self.subscription.nacks) if refused in each.suspects), None)

    def on_wire(self, state: SyncState, version: str) -> str:
        """The version as the client knows it: in SotW a resource has none of its own, but that of the response
        (csds.proto, protocol.md B8). What was not sent has none yet.
        """
        if self.subscription.delta:
            return version
        match state:
            case SyncState.NOT_SENT:
                return ""
            case SyncState.STALE:
                return self.subscription.sent
            case SyncState.ERROR:
                return self.nack.version if self.nack is not None else self.subscription.sent
            case _:
                return self.subscription.acked


def client_resources(
    client: FleetClient, subscriptions: Iterable[StreamSubscription], snapshot: Snapshot | None, show: Show
) -> tuple[ResourceStatus, ...]:
    """Every resource that the streams of one client ask for, in the order in which types are pushed, then by name.

    `snapshot`: what is published; None: nothing was loaded. `show` makes a content's bytes fit to be shown. Streams of
    one client are shown as one (K3): of a resource that several ask for, the state that most needs attention.
    """
    found: dict[tuple[int, str, str], list[_Had]] = {}
    for subscription in subscriptions:
        order = by_word[subscription.type].push_order
        for name, holding in subscription.holdings.items():
            found.setdefault((order, name, subscription.type), []).append(_Had(name, holding, subscription))
    family = family_of(client.user_agent)
    sides = _sides(client, snapshot)
    return tuple(
        _status(by_word[word], name, family, found[order, name, word], sides, show)
        for order, name, word in sorted(found)
    )


def _sides(client: FleetClient, snapshot: Snapshot | None) -> tuple[Snapshot, ...]:
    """What is published for the client: the side of the snapshot that it is on; while a rollout is open, then the other
    one, because what is stored of a client does not always tell its side: its metadata may.
    """
    if snapshot is None or snapshot.candidate is None:
        return () if snapshot is None else (snapshot,)
    facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
    both = snapshot, snapshot.candidate
    return both if snapshot.seen_by(snapshot.audience(facts)) is snapshot else both[::-1]


def _status(
    kind: ResourceType,
    name: str,
    family: ClientFamily,
    streams: list[_Had],
    sides: tuple[Snapshot, ...],
    show: Show,
) -> ResourceStatus:
    holdings = [each.holding for each in streams]
    had = streams[worst(holdings)]
    holding = had.holding
    published = _published(sides, kind, name)
    version, state, details = holding.version, _STATES[holding.state], _words(kind, family, had)
    if holding.state is HoldingState.ACKED and not sides:
        state, details = SyncState.UNKNOWN, NO_SNAPSHOT
    elif holding.state is HoldingState.ACKED and version not in published.contents:
        details = (NEWER if published.newest else GONE).format(version=had.on_wire(SyncState.SYNCED, version))
        state, version = SyncState.NOT_SENT, published.newest
    content = published.contents.get(version)
    shown = show(content) if content is not None else b""
    details = " ".join(filter(None, (details, on_streams(holding, holdings))))
    return ResourceStatus(kind, name, state, had.on_wire(state, version), shown, details, had.subscription.since)


class _Published(NamedTuple):
    """What is published of a name. `newest`: the version that clients are to have; empty where there is none.
    `contents`: by version, that, the withheld content that some are let have, and what the other side of an open
    rollout has.
    """

    newest: str
    contents: Mapping[str, Content]


def _published(sides: tuple[Snapshot, ...], kind: ResourceType, name: str) -> _Published:
    found = [_published_on(each, kind, name) for each in sides]
    contents = {version: content for each in found for version, content in each.contents.items()}
    return _Published(found[0].newest if found else "", contents)


def _published_on(snapshot: Snapshot, kind: ResourceType, name: str) -> _Published:
    state, name = snapshot.type_state(kind), canonical(name)
    served, withheld = state.served.get(name), state.withheld.get(name)
    if served is not None:
        return _Published(served.content.version, {served.content.version: served.content})
    if withheld is None or withheld.content is None:
        return _Published("", {})
    content = withheld.content
    return _Published(content.version if withheld.kinds else "", {content.version: content})


def _words(kind: ResourceType, family: ClientFamily, had: _Had) -> str:
    """Why the client does not have what it is to have, as every door says it; where it refused that, also with what it
    goes on.
    """
    holding = had.holding
    if holding.state is not HoldingState.NACKED:
        return holding.message or SENTENCES.get(holding.state, "")
    nack = had.nack
    said = nack.text if nack is not None else SENTENCES[HoldingState.NACKED]
    if not holding.acked:
        return said
    after = after_nack(family, kind, drops=None)
    kept = had.on_wire(SyncState.SYNCED, holding.acked)
    now = now_runs(after, f"version {kept}", healed=nack is not None and nack.healing)
    return f"{said}. It {now}." if nack is not None else f"{said} It {now}."

"""From what streams reported and what is published to the status of each resource of a client (protocol.md K1). Pure.

The facts hold versions of whole states, not what each resource was sent; `fleet_past` says what such a version stands
for. Where it cannot, the state is UNKNOWN: nothing is guessed (architecture.md law 3).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Variant
from adsserver.engine.shared import Shared
from adsserver.engine.subscription import subscription_to
from adsserver.engine.told import ABSENT, Absent, reported
from adsserver.engine.versions import mark, version_text
from adsserver.ports import FleetClient, ResourceStatus, SyncState
from adsserver.store.fleet_past import Past, Timeline, timeline
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.fleet_selectors import StreamNack, StreamSubscription
from controlplane.incidents.attribution import blame
from xdscore.access import Audience, Effect
from xdscore.after_nack import after_nack, now_runs
from xdscore.client_kinds import ClientFamily, family_of, kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.errors import ResourceError
from xdscore.resource_types import ResourceType, by_word
from xdscore.snapshot import Content

NO_SNAPSHOT = "No snapshot of this environment was loaded yet."
NEWER = "This content was published after the last response to the client and was not sent yet."
UNTRACED = "What the client was sent last cannot be traced to the published content; it may be this or an earlier one."
WITH_OTHERS = "Sent in a response that the client refused because of something else; it may or may not be in use. "
BY_METADATA = "Access rules speak of a group that is told by node metadata, and of that nothing is kept."
TEXT_GONE = "What the client said is no longer kept."

Show = Callable[[Content], bytes]
"""The content as it may be shown."""

# States that streams share: name sets of one fleet.
_MAX_STATES = 1024
_MAX_VIEWS = 256
# Rejected names whose stand-ins are tried together; beyond it the state is not traced.
_MAX_STAND_INS = 6
# Of several streams of a client, the state that is shown: the one that needs attention (protocol.md K3).
_ATTENTION = (SyncState.ERROR, SyncState.UNKNOWN, SyncState.STALE, SyncState.NOT_SENT, SyncState.SYNCED)


@dataclass(frozen=True, slots=True)
class _State:
    """What one subscription is served now: the sum of the marks of all it contains, and its past versions."""

    total: int
    timeline: Timeline


class Published:
    """One environment as it is published now. Results are remembered. For one thread."""

    def __init__(self, past: Past, public_url: str) -> None:
        self.past = past
        self._public_url = public_url
        self._views: Shared[tuple[Audience, str], ClientView] = Shared(_MAX_VIEWS)
        self._states: Shared[tuple[Audience, str, str, bool, frozenset[str]], _State] = Shared(_MAX_STATES)
        access = past.snapshot.access
        mentioned = {key for rule in access.rules for key in rule.client_groups}
        groups = [group for group in access.groups if group.key in mentioned]
        self._by_metadata = any(matcher.metadata for group in groups for matcher in group.matchers)

    def audience(self, client: FleetClient) -> Audience | Absent:
        """The audience of this client; ABSENT where rules look at metadata of the node, which the database does not
        have.
        """
        if self._by_metadata:
            return ABSENT
        kind = kind_of(client.user_agent, client.user_agent_version)
        facts = ClientFacts(client.identity, client.node_id, client.node_cluster, kind=kind)
        return self.past.snapshot.audience(facts)

    def view(self, audience: Audience, kind: ResourceType) -> ClientView:
        """What clients of this audience may see of a type: its resources and errors."""
        key = (audience, kind.word)
        view = self._views.get(key)
        if view is None:
            view = self._views.put(key, ClientView(audience, kind, self.past.snapshot, None))
        return view

    def error(self, view: ClientView, name: str) -> str:
        """The text of the error that a client receives for this name in place of content; empty when it receives
        none.
        """
        told = view.error(name, self._public_url)
        return told.text if isinstance(told, ResourceError) else ""

    def state(self, view: ClientView, variant: str, *, wildcard: bool, names: frozenset[str]) -> _State:
        """What a subscription is served now, as the sum of its marks with its past. `variant` is that of its stream."""
        kind = view.kind
        key = (view.audience, kind.word, variant, wildcard, names)
        known = self._states.get(key)
        if known is not None:
            return known
        if variant == Variant.DELTA.value:
            # Its version is that of the view, whatever part of it a stream asks for (protocol.md B10).
            total, shown, answered = view.total, None, frozenset[str]()
        else:
            body = view.body(subscription_to(wildcard, names, named_once=True), (), self._public_url)
            total, shown, answered = int(body.version, 16), None if wildcard else names, names
        permissions = self.past.snapshot.access.permissions(view.audience, kind)

        def may_read(name: str) -> bool:
            return permissions.ruling(name).effect is Effect.ALLOW

        return self._states.put(key, _State(total, timeline(total, self.past, kind, shown, answered, may_read)))


@dataclass(frozen=True, slots=True)
class _Refused:
    """A content that the client refused.

    among: 1, or the number of contents of which one was refused, when it is not known which.
    kept: the version of the name that the client had acknowledged; empty: none is known.
    now: what the client uses since, as the end of a sentence; empty: not known.
    """

    version: str
    text: str
    at: datetime
    among: int
    kept: str = ""
    now: str = ""

    @property
    def details(self) -> str:
        if self.among == 1:
            return f"{self.text}. It {self.now}." if self.now else self.text
        return f"One of {self.among} changed resources was refused, and it is not known which: {self.text}"


def client_resources(
    client: FleetClient, subscriptions: Iterable[StreamSubscription], published: Published | None, show: Show
) -> tuple[ResourceStatus, ...]:
    """Every resource that the streams of one client ask for, in the order in which types are pushed, then by name.
    `show` makes a content's bytes fit to be shown.

    Streams of one client are shown as one (K3): of a resource that several ask for, the state that most needs
    attention.
    """
    found: dict[tuple[int, str], list[ResourceStatus]] = {}
    audience = published.audience(client) if published is not None else ABSENT
    family = family_of(client.user_agent)
    for subscription in subscriptions:
        kind = by_word[subscription.type]
        rejected = rejections(kind, family, subscription.nacks)
        for status in _statuses(subscription, kind, published, audience, rejected, show):
            found.setdefault((kind.push_order, status.name), []).append(status)
    return tuple(_together(found[key]) for key in sorted(found))


def _together(statuses: Sequence[ResourceStatus]) -> ResourceStatus:
    worst = min(statuses, key=lambda status: _ATTENTION.index(status.state))
    alike = sum(status.state is worst.state for status in statuses)
    if alike == len(statuses):
        return worst
    return replace(worst, details=f"On {alike} of {len(statuses)} streams of this client. {worst.details}".rstrip())


def _statuses(
    subscription: StreamSubscription,
    kind: ResourceType,
    published: Published | None,
    audience: Audience | Absent,
    rejected: Mapping[str, _Refused],
    show: Show,
) -> Iterable[ResourceStatus]:
    names = frozenset(subscription.names)
    if published is None:
        return [ResourceStatus(kind, name, SyncState.NOT_SENT, details=NO_SNAPSHOT) for name in sorted(names)]
    if isinstance(audience, Absent):
        candidates = names | (
            published.past.snapshot.type_state(kind).served.keys() if subscription.wildcard else set()
        )
        return [ResourceStatus(kind, name, SyncState.UNKNOWN, details=BY_METADATA) for name in sorted(candidates)]
    view = published.view(audience, kind)
    rejected = _still_rejected(subscription, view, rejected)
    told = _TypeSent(
        subscription, published.state(view, subscription.variant, wildcard=subscription.wildcard, names=names)
    )
    told.add_stand_ins(view, rejected)
    statuses = []
    for name in sorted(names | view.named.keys()) if subscription.wildcard else sorted(names):
        member = view.named.get(name)
        if member is None:
            statuses.append(_without_content(subscription, kind, name, published.error(view, name)))
            continue
        state, details, at = told.state_of(name, rejected.get(name))
        content = member.content
        statuses.append(ResourceStatus(kind, name, state, content.version, show(content), details, at))
    return statuses


def _without_content(subscription: StreamSubscription, kind: ResourceType, name: str, error: str) -> ResourceStatus:
    """The status of a name that was asked for and is not served; `error` is what the client is told instead. CSDS has
    no value for "an error was sent" (clients.md 5).
    """
    answered = subscription.state is not SubscriptionState.REQUESTED
    return ResourceStatus(
        kind,
        name,
        SyncState.NOT_SENT,
        details=error if answered else "",
        updated_at=subscription.sent_at,
    )


class _TypeSent:
    """What one stream was sent of one type and answered, as far as it is recorded."""

    def __init__(self, subscription: StreamSubscription, state: _State) -> None:
        self._subscription = subscription
        self._state = state
        self._stand_ins: frozenset[str] = frozenset()
        self._rejected: frozenset[str] = frozenset()

    def add_stand_ins(self, view: ClientView, rejected: Mapping[str, _Refused]) -> None:
        """Take into account that the client may have been sent other content in place of what it refused, which gives
        its state other versions (protocol.md F17).
        """
        if not rejected or len(rejected) > _MAX_STAND_INS or self._subscription.variant == Variant.DELTA.value:
            return
        self._rejected = frozenset(rejected)
        steps = []
        for name, rejection in rejected.items():
            usable = {0}
            if rejection.kept:
                usable.add(mark(name, reported(rejection.kept)))
            proven = view.proven(name)
            if not isinstance(proven, Absent):
                usable.add(mark(name, proven))
            steps.append([stand_in - mark(name, view.named[name].content) for stand_in in usable])
        self._stand_ins = frozenset(version_text(self._state.total + sum(chosen)) for chosen in product(*steps))

    def state_of(self, name: str, rejection: _Refused | None) -> tuple[SyncState, str, datetime | None]:
        """Whether the client has the present content of a name: the state, its details, and the time of the response or
        request that it follows from. `rejection`: what the client refused of the name, if anything.
        """
        subscription = self._subscription
        if rejection is not None:
            return SyncState.ERROR, rejection.details, rejection.at
        if subscription.state is SubscriptionState.REQUESTED:
            return SyncState.NOT_SENT, "", None
        shown = self._shows(subscription.sent, name)
        if not shown:
            state, details = (SyncState.UNKNOWN, UNTRACED) if shown is None else (SyncState.NOT_SENT, NEWER)
            return state, details, subscription.sent_at
        if subscription.state is SubscriptionState.ACKED or self._acknowledged(name):
            return SyncState.SYNCED, "", subscription.acked_at
        if subscription.state is SubscriptionState.SENT:
            return SyncState.STALE, "", subscription.sent_at
        return self._beside_a_rejection(name)

    def _shows(self, version: str, name: str) -> bool | None:
        if version in self._stand_ins:
            return name not in self._rejected
        return self._state.timeline.shows_current(version, name)

    def _acknowledged(self, name: str) -> bool:
        """Whether an earlier ACK was for a response with the present content of this name."""
        subscription = self._subscription
        if subscription.variant == Variant.DELTA.value and subscription.acked == subscription.sent:
            # The view did not change between the two responses; which names each held is not in its version.
            return False
        return subscription.acked != "" and self._shows(subscription.acked, name) is True

    def _beside_a_rejection(self, name: str) -> tuple[SyncState, str, datetime | None]:
        """The state, details and time of a name whose response was refused because of another name (protocol.md
        B12).
        """
        subscription = self._subscription
        if not subscription.nacks:
            return SyncState.UNKNOWN, WITH_OTHERS + TEXT_GONE, subscription.sent_at
        nack = subscription.nacks[-1]
        if subscription.acked and all(name != held for held, _ in nack.resources):
            return SyncState.SYNCED, "", subscription.acked_at
        return SyncState.UNKNOWN, WITH_OTHERS + nack.text, nack.at


def _still_rejected(
    subscription: StreamSubscription, view: ClientView, rejected: Mapping[str, _Refused]
) -> dict[str, _Refused]:
    """The refused contents that are still published, by name."""
    still = {}
    for name, rejection in rejected.items():
        member = view.named.get(name)
        if member is None or member.content.version != rejection.version:
            continue
        proven = view.proven(name)
        if (
            rejection.among > 1
            and subscription.state is SubscriptionState.ACKED
            and proven is not ABSENT
            and proven == member.content
        ):
            # It was one of several; since then this client acknowledged what it is sent, and somebody exactly this.
            continue
        still[name] = rejection
    return still


def rejections(kind: ResourceType, family: ClientFamily, nacks: Iterable[StreamNack]) -> dict[str, _Refused]:
    """The contents that a client refused, by name, found from the NACKs of one stream (oldest first); the last refusal
    of each name.

    Once one suspect is known to be the culprit, those suspected together with it are cleared: the stream sends suspects
    again apart from each other, and a second culprit is then found by itself (decisions C8).
    """
    found: dict[str, _Refused] = {}
    suspected: list[tuple[tuple[str, str], ...]] = []
    for nack in nacks:
        verdict = blame(type_url=kind.url, text=nack.text, resources=nack.resources, suspects=nack.suspects)
        for culprit in verdict.culprits:
            for group in suspected:
                if culprit in group:
                    _clear(found, group)
            kept, now = _now_of(kind, family, nack, culprit[0])
            found[culprit[0]] = _Refused(culprit[1], nack.text, nack.at, 1, kept, now)
        for name, version in verdict.suspects:
            known = found.get(name)
            if known is None or known.version != version or known.among > 1:
                found[name] = _Refused(version, nack.text, nack.at, len(verdict.suspects))
        if verdict.suspects:
            suspected.append(verdict.suspects)
    return found


def _now_of(kind: ResourceType, family: ClientFamily, nack: StreamNack, name: str) -> tuple[str, str]:
    """The version that the client had of a name before it refused another one, and what it uses since, as the end of a
    sentence. Both are empty when it was not recorded.
    """
    if nack.kept is None:
        return "", ""
    kept = dict(nack.kept).get(name, "")
    after = after_nack(family, kind, drops=None)
    return kept, str(now_runs(after, f"version {kept}" if kept else "", healed=nack.healing))


def _clear(found: dict[str, _Refused], group: tuple[tuple[str, str], ...]) -> None:
    for name, version in group:
        known = found.get(name)
        if known is not None and known.version == version and known.among > 1:
            del found[name]

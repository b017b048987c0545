"""What one client has of each resource of a type: what follows from what it was sent and answered (truth.md H2).

An ACK proves the content of everything in its response. A NACK says something of what was new in its response: the
culprit, once it is the only suspect or named by the text, is refused, and of the others nobody knows what the client
holds until they were sent again (B12). All else keeps its state.

Thousands of clients rest on one and the same ground, a view or a body. Only names that do not are kept by name.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from adsserver.engine.body import Body
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import NamedContent, Respond
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import UNKNOWN_COPY, Absent, Told
from xdscore.errors import ResourceError
from xdscore.holdings import REQUESTED, Holding, HoldingState
from xdscore.snapshot import Content


class ViewGround(NamedTuple):
    """Everything that a subscription shows of a view; `tells`: whether the client is told errors."""

    view: ClientView | Absent
    subscription: Subscription
    public_url: str
    tells: bool

    def everything(self) -> Iterator[tuple[str, Holding]]:
        """Each name that the client asks for and what it has of it, if it acknowledged all that the view shows."""
        return _everything(self.members(), self.others())

    def members(self) -> Mapping[str, NamedContent]:
        """The content that the view shows, by name. A name that did not change has the object of the view before."""
        view, subscription = self.view, self.subscription
        if isinstance(view, Absent):
            return {}
        if subscription.wildcard:
            return view.named
        return {name: view.named[name] for name in self._explicit(view) if name in view.named}

    def others(self) -> Mapping[str, Holding]:
        """What the client has of names that it asks for and that have no content."""
        view, subscription = self.view, self.subscription
        if isinstance(view, Absent):
            return dict.fromkeys(subscription.names, REQUESTED)
        shown = (
            (name, view.shown(name, subscription, self.public_url))
            for name in self._explicit(view)
            if name not in view.named
        )
        return {name: rests(told, tells=self.tells) for name, told in shown if not isinstance(told, Absent)}

    def _explicit(self, view: ClientView) -> AbstractSet[str]:
        subscription = self.subscription
        return subscription.names | view.members_of(subscription.globs) if subscription.globs else subscription.names


class BodyGround(NamedTuple):
    """Everything that a full state holds; `tells`: whether the client is told errors."""

    body: Body
    tells: bool

    def everything(self) -> Iterator[tuple[str, Holding]]:
        """Each name of the state and what the client has of it, if it acknowledged the state."""
        return _everything(self.members(), self.others())

    def members(self) -> Mapping[str, NamedContent]:
        """The content that the state holds, by name. A name that did not change has the object of the state before."""
        return self.body.named

    def others(self) -> Mapping[str, Holding]:
        """What the client has of names that the state tells an error of."""
        return {error.name: explained(error, None, tells=self.tells) for error in self.body.errors}


Ground = ViewGround | BodyGround


@dataclass(frozen=True, slots=True)
class Holdings:
    """What one client has of one type: what its ground shows, but for the names that are `apart` (None: nothing)."""

    ground: Ground
    apart: Mapping[str, Holding | None]


class Known(NamedTuple):
    """What is known of one name on one stream.

    `told`: what the client was told last. `acked`: what it acknowledged, or has said that it holds; None: nothing, or
    nobody knows. `refused`: the content shown now, if the client refused it. `open`: whether a response that holds the
    name is not answered yet. `undecided`: whether it is one of several suspects. `doubted`: whether nobody knows
    since a NACK which copy the client holds.
    """

    told: Told
    acked: Content | None
    refused: Content | None = None
    open: bool = False
    undecided: bool = False
    doubted: bool = False


def holding_of(known: Known, *, tells: bool) -> Holding | None:
    """What a client has of a name of which this is known; None: nothing that could be said of it. `tells`: whether the
    client is told errors.
    """
    told, refused = known.told, known.refused
    has = known.acked.version if known.acked is not None else ""
    awaits = isinstance(told, Content) and known.open and told.version not in {"", has}
    if isinstance(told, Content) and awaits and (refused is None or told.version == refused.version):
        return Holding(HoldingState.SENT, told.version, has)
    if refused is not None:
        state = HoldingState.UNKNOWN if known.undecided else HoldingState.NACKED
        return Holding(state, refused.version, has)
    match told:
        case ResourceError():
            return explained(told, known.acked, tells=tells)
        case Absent():
            return REQUESTED
    if told is UNKNOWN_COPY or (known.doubted and told.version != has):
        return Holding(HoldingState.UNKNOWN, told.version, "" if known.doubted else has)
    return acknowledged(told.version)


def _everything(members: Mapping[str, NamedContent], others: Mapping[str, Holding]) -> Iterator[tuple[str, Holding]]:
    for name in sorted(members.keys() | others.keys()):
        yield name, acknowledged(members[name].content.version) if name in members else others[name]


def acknowledged(version: str) -> Holding:
    """What a client has of a resource that it acknowledged in this version."""
    return Holding(HoldingState.ACKED, version, version)


def explained(error: ResourceError, kept: Content | None, *, tells: bool) -> Holding:
    """What a client has of a name of which it was told an error; `kept`: the copy that it goes on with."""
    state = HoldingState.ERROR_SENT if tells else HoldingState.SILENT
    return Holding(state, "", kept.version if kept is not None else "", error.xds_code, error.text)


def rests(shown: Content | ResourceError, *, tells: bool) -> Holding:
    """What a client has of a name if it acknowledged what is shown of it."""
    if isinstance(shown, ResourceError):
        return explained(shown, None, tells=tells)
    return acknowledged(shown.version)


class Before(Protocol):
    """What a client had, by name."""

    def get(self, name: str, default: Holding, /) -> Holding:
        """The client's holding of this name; `default` where it had nothing."""
        ...


def with_unanswered(before: Before, response: Respond, *, tells: bool) -> dict[str, Holding | None]:
    """What changes for a client that had `before` when it is sent this response; None: it has nothing any more.

    For who has not answered for so long that it is worth to be said.
    """
    changed: dict[str, Holding | None] = dict.fromkeys(response.removed)
    for member in response.resources:
        known = before.get(member.name, REQUESTED)
        version = member.content.version
        # Who refused something and never acknowledged anything is sent what others proved, in its place (F17).
        stands_in = known.state is HoldingState.NACKED and not known.acked and version != known.version
        if version != known.acked and not stands_in:
            changed[member.name] = Holding(HoldingState.SENT, version, known.acked)
    for error in response.errors:
        changed[error.name] = explained(error, None, tells=tells)
    return changed

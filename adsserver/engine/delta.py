"""Incremental xDS: how a DeltaDiscoveryRequest is read, and what a loss looks like."""

from collections.abc import Iterable

from adsserver.engine.by_name import ByName
from adsserver.engine.change import Change
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import DeltaRequest, Fact, Subscribed, Violated
from adsserver.engine.subscription import WILDCARD, edited, legacy_wildcard
from adsserver.engine.told import Absent, Told
from xdscore.resource_types import DeltaMissing
from xdscore.snapshot import Content
from xdscore.xdstp import glob_of


class DeltaByName(ByName):
    """Any type over delta."""

    __slots__ = ()

    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """What the client holds of ours, and what it asked for and cannot have.

        The latter only where the type allows it (E2, F12, F13, T10).
        """
        both = self.kind.delta_missing is DeltaMissing.ENTRY_AND_REMOVAL
        return tuple(
            loss.name
            for loss in losses
            if isinstance(loss.before, Content)
            or isinstance(loss.now, Absent)
            or (both and (loss.forced or isinstance(loss.before, Absent)))
        )

    def says_gone(self, name: str, before: Told) -> bool:
        """A resource, and a name that a client leaves under its wildcard (C7); not a collection, which has members."""
        return isinstance(before, Content) or (self.subscription.wildcard and glob_of(name) is None)

    def version_after(self, _changes: Iterable[Change], view: ClientView) -> str:
        """The version of the shared view; delta clients only show it to people (B10)."""
        return view.version


def receive(stream: DeltaByName, request: DeltaRequest) -> tuple[Fact, ...]:
    """Read a request.

    Its lists count whatever its nonce is; what it says about a response counts only for an outstanding one (B5).
    """
    facts: tuple[Fact, ...] = ()
    if request.nonce:
        facts = stream.answered(request.nonce, request.nack)
    elif request.nack is not None:
        facts = (Violated("N1", "an error was reported without saying for which response"),)
    first, stream.asked_before = not stream.asked_before, True
    current = stream.subscription
    if first and not request.subscribe and not request.unsubscribe:
        wanted = legacy_wildcard(stream.kind)
    else:
        wanted = edited(stream.kind, current, request.subscribe, request.unsubscribe)
    if max(len(request.subscribe), len(wanted.names)) > stream.settings.max_names:
        return (*facts, _too_many(stream, max(len(request.subscribe), len(wanted.names))))
    asked = wanted.names & frozenset(request.subscribe)
    if first:
        # C6: what the client says it has is compared, not answered; E5: saying so is no subscription.
        asked -= request.initial_versions.keys()
    elif wanted.wildcard:
        # C7: under a wildcard the client has to hear what becomes of a name it no longer asks for by itself.
        left = {name for name in request.unsubscribe if name in current.names or stream.was_told(name)}
        asked |= {name for name in left - wanted.names if glob_of(name) is None}
    if WILDCARD in request.subscribe and wanted.wildcard and current.wildcard:
        stream.forget_all()
    stream.subscribe(wanted, asked)
    if first:
        stream.holds(request.initial_versions)
    if wanted == current and not first:
        return facts
    return (*facts, Subscribed(stream.kind, wanted.wildcard, wanted.names))


def _too_many(stream: DeltaByName, count: int) -> Violated:
    limit = stream.settings.max_names
    return Violated("C11", f"{count} {stream.kind.title} names on one stream; at most {limit} are allowed")

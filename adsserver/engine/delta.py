"""Incremental xDS: how a DeltaDiscoveryRequest is read, and what a loss looks like."""

from collections.abc import Iterable

from adsserver.engine.by_name import ByName
from adsserver.engine.change import Change
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import DeltaRequest, Fact, Subscribed, Violated
from adsserver.engine.subscription import WILDCARD, edited, legacy_wildcard
from adsserver.engine.told import Absent
from xdscore.errors import ResourceError, StatusCode
from xdscore.resource_types import DeltaMissing
from xdscore.snapshot import Content
from xdscore.xdstp import glob_of


class DeltaByName(ByName):
    """One type on a delta stream: how a loss, a kept copy and a version are written in a DeltaDiscoveryResponse."""

    __slots__ = ()

    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """What the client holds of ours, and what it asked for and cannot have.

        The latter only where the type allows it (E2, F12, F13, T10). Not what the client goes on with.
        """
        return tuple(loss.name for loss in losses if self._is_removed(loss))

    def unresolved_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """What the client asked for and cannot have, where the type says that by an alias of nothing (E2)."""
        how = DeltaMissing.ENTRY_AND_ALIAS
        return tuple(loss.name for loss in losses if not self._has_copy(loss) and self._is_answered_by(how, loss))

    def _is_removed(self, loss: Change) -> bool:
        if self._has_copy(loss):
            # What passes by itself takes nothing away (F14, F18a).
            return _code(loss) not in {StatusCode.UNAVAILABLE, StatusCode.INTERNAL}
        return isinstance(loss.now, Absent) or self._is_answered_by(DeltaMissing.ENTRY_AND_REMOVAL, loss)

    def _has_copy(self, loss: Change) -> bool:
        return isinstance(loss.before, Content) or self._memory[loss.name].copy is not None

    def _is_answered_by(self, how: DeltaMissing, loss: Change) -> bool:
        """Whether the client is told in this way that there is no such name. What cannot be read now may exist."""
        if self.kind.delta_missing is not how or _code(loss) is StatusCode.UNAVAILABLE:
            return False
        return loss.forced or isinstance(loss.before, Absent)

    def says_gone(self, name: str, has_copy: bool) -> bool:
        """Of a resource, and of a name that a client leaves under its wildcard (C7); not of a collection, which has
        members.
        """
        return has_copy or (self.subscription.wildcard and glob_of(name) is None)

    def version_after(self, _changes: Iterable[Change], view: ClientView) -> str:
        """The version of the shared view; delta clients only show it to people (B10)."""
        return view.version


def _code(loss: Change) -> StatusCode | None:
    return loss.now.code if isinstance(loss.now, ResourceError) else None


def receive(stream: DeltaByName, request: DeltaRequest) -> tuple[Fact, ...]:
    """Read a request.

    Its lists count whatever its nonce is; what it says about a response counts only for an outstanding one (B5).
    """
    facts: tuple[Fact, ...] = ()
    if request.nonce:
        facts = stream.answered(request.nonce, request.nack)
    elif request.nack is not None:
        facts = (Violated("N1", "an error was reported without saying for which response"),)
    if stream.asked_before and not request.subscribe and not request.unsubscribe:
        # Most requests: an answer to a response, and nothing else.
        return facts
    return (*facts, *_subscribe(stream, request))


def _subscribe(stream: DeltaByName, request: DeltaRequest) -> tuple[Fact, ...]:
    """Apply the lists of subscriptions of a request, and say what the client is subscribed to if that changed."""
    first, stream.asked_before = not stream.asked_before, True
    current = stream.subscription
    if not request.subscribe and not request.unsubscribe:
        wanted = legacy_wildcard(stream.kind)
    else:
        wanted = edited(stream.kind, current, request.subscribe, request.unsubscribe)
    if max(len(request.subscribe), len(wanted.names)) > stream.settings.limits.names_per_type:
        return (_too_many(stream, max(len(request.subscribe), len(wanted.names))),)
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
        return ()
    return (Subscribed(stream.kind, wanted.wildcard, wanted.names),)


def _too_many(stream: DeltaByName, count: int) -> Violated:
    limit = stream.settings.limits.names_per_type
    return Violated("C11", f"{count} {stream.kind.title} names on one stream; at most {limit} are allowed")

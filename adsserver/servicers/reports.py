"""What one stream tells metrics and logs of what is said on it. Made by `stream`; nothing here decides anything."""

import structlog

from adsserver.engine.events import Acknowledged, Fact, Rejected, Respond, Variant, Violated
from adsserver.limits.admission import DeniedNames
from adsserver.metrics import Metrics
from adsserver.ports import StreamInfo
from adsserver.servicers.refusal_log import RefusalLog
from xdscore.callers import caller_key
from xdscore.errors import StatusCode
from xdscore.limits import Limits
from xdscore.resource_types import ResourceType

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Reports:
    """Counts and logs the facts, responses and problems of one stream."""

    __slots__ = ("_denied", "_limits", "_metrics", "_refusals", "_too_large", "_variant", "_violated")

    def __init__(
        self, variant: Variant, metrics: Metrics, limits: Limits, denied: DeniedNames, refusals: RefusalLog
    ) -> None:
        self._variant = variant
        self._metrics = metrics
        self._limits = limits
        self._denied = denied
        self._refusals = refusals
        self._too_large: dict[ResourceType, int] = {}
        self._violated: frozenset[str] = frozenset()

    def learnt(self, info: StreamInfo, fact: Fact) -> None:
        """Count what the engine learnt from a request. When the client breaks the same rule again and again, it is
        logged once.
        """
        metrics = self._metrics
        match fact:
            case Acknowledged():
                metrics.acks[fact.kind.word].inc()
            case Rejected():
                metrics.nacks[fact.kind.word].inc()
                if fact.healing:
                    metrics.heals[fact.kind.word].inc()
                if not fact.resources:
                    # reliability T7: no content is to blame, so that nobody but us can have made the mistake.
                    metrics.nacks_without_content[fact.kind.word].inc()
                self._refusals.refused(info, fact)
            case Violated():
                metrics.violations.inc()
                if fact.rule not in self._violated:
                    self._violated |= {fact.rule}
                    log.info("stream.violated", stream=info.id, node_id=info.node_id, rule=fact.rule)

    def sent(self, info: StreamInfo, response: Respond, now: float) -> None:
        """Count a response that is about to be written."""
        metrics, word = self._metrics, response.kind.word
        metrics.responses[self._variant.value, word].inc()
        if not response.errors:
            return
        codes = [error.code for error in response.errors]
        for code in set(codes):
            metrics.errors[word, code].inc(codes.count(code))
        if StatusCode.PERMISSION_DENIED not in codes:
            return
        refused = [(word, error.name) for error in response.errors if error.code is StatusCode.PERMISSION_DENIED]
        caller = caller_key(info.identity, info.peer)
        if self._denied.refused(caller, refused, now):
            metrics.probing.inc()
            limit = self._limits.denied_names_per_h
            who = {"identity": caller.identity, "address": caller.address, "node_id": info.node_id}
            log.warning("client.probing", **who, names_per_h=limit)

    def too_large(self, info: StreamInfo, states: dict[ResourceType, int]) -> None:
        """Count and log the types whose full state is too large to be sent now, given with its bytes; once for each
        size of a state (F24).
        """
        for kind, size in states.items():
            if self._too_large.get(kind) != size:
                self._metrics.too_large[kind.word].inc()
                limit = self._limits.sotw_state_bytes
                log.warning("stream.state_too_large", stream=info.id, type=kind.word, bytes=size, limit=limit)
        self._too_large = states

"""What one stream tells metrics and logs of what is said on it. Made by `stream`; nothing here decides anything."""

from collections import Counter
from typing import NamedTuple

import structlog

from adsserver.engine.events import Acknowledged, Fact, Rejected, Respond, Variant, Violated
from adsserver.limits.admission import DeniedNames
from adsserver.metrics import Metrics
from adsserver.ports import StreamInfo
from adsserver.servicers.refusal_log import RefusalLog
from xdscore.callers import caller_key
from xdscore.errors import ResourceError, StatusCode
from xdscore.limits import Limits
from xdscore.resource_types import ResourceType

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CountedErrors(NamedTuple):
    """What is counted of the errors of a response: how many have each code, and which names, as (type, name), were
    denied.
    """

    codes: tuple[tuple[StatusCode, int], ...]
    denied: tuple[tuple[str, str], ...]


class ErrorCounts:
    """Counts the errors of responses, once for all streams that are told the very same, one after the other."""

    def __init__(self) -> None:
        self._word = ""
        self._errors: tuple[ResourceError, ...] = ()
        self._counted = CountedErrors((), ())

    def of(self, word: str, errors: tuple[ResourceError, ...]) -> CountedErrors:
        """What is counted of these errors, told of the type with this word."""
        # Not by value: after a change all streams share another tuple, mostly of equal errors.
        if errors is not self._errors or word != self._word:
            codes = Counter(error.code for error in errors)
            denied = tuple((word, error.name) for error in errors if error.code is StatusCode.PERMISSION_DENIED)
            self._word, self._errors = word, errors
            self._counted = CountedErrors(tuple(codes.items()), denied)
        return self._counted


class Reports:
    """Counts and logs the facts, responses and problems of one stream."""

    __slots__ = ("_counts", "_denied", "_limits", "_metrics", "_refusals", "_too_large", "_variant", "_violated")

    def __init__(
        self,
        variant: Variant,
        metrics: Metrics,
        limits: Limits,
        denied: DeniedNames,
        refusals: RefusalLog,
        counts: ErrorCounts,
    ) -> None:
        self._variant = variant
        self._metrics = metrics
        self._limits = limits
        self._denied = denied
        self._refusals = refusals
        self._counts = counts
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
        if response.heartbeat:
            metrics.heartbeats[word].inc()
        if not response.errors:
            return
        counted = self._counts.of(word, response.errors)
        for code, count in counted.codes:
            metrics.errors[word, code].inc(count)
        if not counted.denied:
            return
        caller = caller_key(info.identity, info.peer)
        if self._denied.refused(caller, counted.denied, now):
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

"""What all streams of a process share. Put together by `server`."""

import os
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc

from adsserver.engine.settings import EngineSettings
from adsserver.identity.callers import Callers
from adsserver.limits.admission import Admission, DeniedNames
from adsserver.limits.budgets import Budgets
from adsserver.metrics import Metrics
from adsserver.ports import Facts
from adsserver.servicers.hub import Hub
from adsserver.servicers.refusal_log import RefusalLog
from adsserver.servicers.reports import ErrorCounts
from adsserver.wire.discovery import Decoder, Encoder
from xdscore.limits import Limits

if TYPE_CHECKING:
    from adsserver.servicers.stream import Stream

Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Shared:
    """The objects that all streams of a process share. `open` holds the open streams."""

    hub: Hub
    callers: Callers
    encoder: Encoder
    decoder: Decoder
    facts: Facts
    metrics: Metrics
    limits: Limits
    settings: EngineSettings
    budgets: Budgets
    admission: Admission
    denied: DeniedNames
    parsers: Executor
    refusals: RefusalLog
    error_counts: ErrorCounts
    open: set["Stream"] = field(default_factory=set)


def stream_id() -> str:
    """A new id for a stream, unique among all ADS processes. It begins with the time, as UUIDv7 does (RFC 9562, section
    5.7), so that the rows of new streams stand together in an index of the database.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"

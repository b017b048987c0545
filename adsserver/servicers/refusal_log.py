"""Says in the log what clients refuse: each content at once, and how often since every few seconds.

A fleet refuses a response within a second, and a line for each client costs more than everything else a NACK costs and
tells nobody more (reliability F19). Each NACK is kept as a fact of its own all the same; the log is not where they are
counted.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import structlog

from adsserver.engine.events import Rejected
from adsserver.ports import StreamInfo
from xdscore.callers import CallerKey, caller_key

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_PERIOD_S: Final = 10.0
# What a line shows, and by what two refusals are told apart.
_SHOWN_NAMES: Final = 3
# Contents told apart in one period, of all callers and of one; those beyond it are only counted. A caller that asks for
# other names each time refuses another content each time, and must not use up the lines of all others.
_MAX_CONTENTS: Final = 256
_MAX_OF_CALLER: Final = 16

# Environment, type, the first suspects with their versions, and how many there are.
_Content = tuple[str, str, tuple[tuple[str, str], ...], int]


@dataclass(slots=True)
class _Repeats:
    """The number of refusals of one content since its log line was written."""

    count: int = 0
    streams: set[str] = field(default_factory=set)


class RefusalLog:
    """Writes what clients refuse to the log of a process: a line for each content at once, later only how often it was
    refused again. Used on the event loop only.
    """

    def __init__(self) -> None:
        self._repeats: dict[_Content, _Repeats] = {}
        self._lines: Counter[CallerKey] = Counter()
        self._uncounted = 0
        self._timer: asyncio.TimerHandle | None = None

    def refused(self, info: StreamInfo, fact: Rejected) -> None:
        """Note that a client refused a response. The client's text is not logged, because it may quote content: it is
        stored with the NACK and shown with the incident (reliability N8).
        """
        first = tuple((member.name, member.content.version) for member in fact.suspects[:_SHOWN_NAMES])
        content = (info.environment, fact.kind.word, first, len(fact.suspects))
        repeats = self._repeats.get(content)
        if repeats is not None:
            repeats.count += 1
            repeats.streams.add(info.id)
            return
        caller = caller_key(info.identity, info.peer)
        if len(self._repeats) >= _MAX_CONTENTS or self._lines[caller] >= _MAX_OF_CALLER:
            self._uncounted += 1
            return
        self._lines[caller] += 1
        self._repeats[content] = _Repeats()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PERIOD_S, self.tell)
        log.warning(
            "stream.nacked",
            stream=info.id,
            node_id=info.node_id,
            environment=info.environment,
            type=fact.kind.word,
            nonce=fact.nonce,
            code=fact.nack.code,
            resources=len(fact.resources),
            suspects=len(fact.suspects),
            names=_names(content),
        )

    def tell(self) -> None:
        """Log how often each content was refused since its line was written, and count anew; also called when the
        process stops.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for content, repeats in self._repeats.items():
            if repeats.count:
                environment, word, _, suspects = content
                log.warning(
                    "stream.nacked_again",
                    environment=environment,
                    type=word,
                    suspects=suspects,
                    names=_names(content),
                    times=repeats.count,
                    streams=len(repeats.streams),
                )
        if self._uncounted:
            log.warning("stream.nacked_more", times=self._uncounted)
        self._repeats.clear()
        self._lines.clear()
        self._uncounted = 0


def _names(content: _Content) -> str:
    return ", ".join(name for name, _ in content[2])

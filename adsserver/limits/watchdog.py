"""Says where the event loop is held up, while it is: a thread that looks whether it still turns (reliability F30).

Started with the server. One line for each time the loop stands still, with the stack of what holds it; the histogram
of its lag says how often and how long.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from traceback import walk_stack

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.watchdog")  # users filter lines by this name

# Longer than this nobody may hold the loop up (reliability F30).
BLOCKED_S = 0.25
_BEAT_S = 0.05
_MAX_FRAMES = 20


class Watchdog:
    """Notices, from a thread of its own, when the event loop on which `start` is called is blocked, and logs where.
    `blocked` is called in that thread each time.
    """

    def __init__(self, blocked: Callable[[], None]) -> None:
        self._blocked = blocked
        self._beat_at = 0.0
        self._thread_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch the loop from now on."""
        self._thread_id = threading.get_ident()
        self._beat(asyncio.get_running_loop())
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; called on the loop."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat_at = time.monotonic()
        self._timer = loop.call_later(_BEAT_S, self._beat, loop)

    def _watch(self) -> None:
        told_of, looked_at, worked_s = 0.0, time.monotonic(), time.process_time()
        while not self._stopping.wait(_BEAT_S):
            pause_s, work_s = time.monotonic() - looked_at, time.process_time() - worked_s
            looked_at, worked_s = looked_at + pause_s, worked_s + work_s
            beat_at = self._beat_at
            # A process that was stopped, or had no processor, was not held up by any line of its own.
            stood_still = pause_s > BLOCKED_S and work_s < pause_s / 2
            if beat_at != told_of and not stood_still and looked_at - beat_at > BLOCKED_S + _BEAT_S:
                told_of = beat_at
                self._blocked()
                log.warning("loop.blocked", since_s=round(looked_at - beat_at, 2), where=self._stack())

    def _stack(self) -> list[str]:
        """The stack of the loop's thread, innermost call first: file, line and function of each, no values."""
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented under this name
        places = [f"{each.f_code.co_filename}:{line} {each.f_code.co_qualname}" for each, line in walk_stack(frame)]
        return places[:_MAX_FRAMES]

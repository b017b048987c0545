"""Hints over Redis: "look now". Losing one costs latency, never a change (architecture.md law 4).

Whoever hints returns at once: one background thread sends, from a bounded queue that merges equal hints; while the
broker does not answer, hints are dropped for ten seconds at a time (decisions D8, dependencies.md 16). The builder's
sweeper and the replicas' poll find what a lost hint would have told.

A hint to build costs a worker a task, and one build takes all changes that wait for it. So of equal ones a process
sends the first at once, and one for all that follow within 50 ms: no sooner does the next build begin anyway
(`builder.pacing`).
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger("controlplane.hints")  # users filter lines by this name

PUBLISHED_CHANNEL = "parley:published"
JUDGE_CHANNEL = "parley:judge"
"""On it the key of an environment means: clients on the candidate side of its open rollout said something."""
_CHANNELS = {"published": PUBLISHED_CHANNEL, "judge": JUDGE_CHANNEL}
BREAK_S = 10.0
MAX_WAITING = 1_000
REST_S: Final = {"build": 0.05}
"""How many seconds after a hint of this kind an equal one may follow at the earliest; others may at once."""

Hint = tuple[str, str | int]
"""A hint: ("build", environment id), ("rollout", environment id), ("published", environment key) or ("judge",
environment key).
"""


class HintSender:
    """Hands hints to `deliver` in a thread of its own, so that `send` never blocks and never raises."""

    def __init__(self, deliver: Callable[[Hint], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._deliver = deliver
        self._clock = clock
        self._waiting: dict[Hint, None] = {}
        self._resting: dict[Hint, float] = {}
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._silent_until = 0.0
        # A forked child inherits the object but not the thread, and maybe a lock that nobody will release.
        os.register_at_fork(after_in_child=self._start_over)

    def _start_over(self) -> None:
        self._waiting, self._resting = {}, {}
        self._condition = threading.Condition()
        self._thread = None

    def send(self, hint: Hint) -> None:
        """Queue a hint. If an equal one waits already, or the queue is full, it is dropped."""
        with self._condition:
            if hint in self._waiting or len(self._waiting) >= MAX_WAITING:
                return
            self._waiting[hint] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()
            self._condition.notify()

    def _run(self) -> None:
        while True:
            hint = self._take()
            if self._clock() >= self._silent_until:
                self._try(hint)

    def _take(self) -> Hint:
        """Wait for a hint that may be sent now, and take it from the queue."""
        with self._condition:
            while True:
                now = self._clock()
                self._resting = {hint: until for hint, until in self._resting.items() if until > now}
                for hint in self._waiting:
                    if hint not in self._resting:
                        del self._waiting[hint]
                        if rest_s := REST_S.get(hint[0]):
                            self._resting[hint] = now + rest_s
                        return hint
                self._condition.wait(min(self._resting.values()) - now if self._waiting else None)

    def _try(self, hint: Hint) -> None:
        try:
            self._deliver(hint)
        except Exception as error:  # noqa: BLE001 - whatever the broker's client raises, a hint is only a hint
            self._silent_until = self._clock() + BREAK_S
            log.warning("hint.dropped", reason=str(error), silent_s=BREAK_S)


def _nobody(_environment_id: int) -> None:
    raise RuntimeError("this process was put together without anything that asks for builds or rollouts")


_build_ask: Callable[[int], None] = _nobody
_rollout_ask: Callable[[int], None] = _nobody


def builds_asked_by(ask: Callable[[int], None]) -> None:
    """Set the function that carries hints to build from now on: `ask` is called with the id of the environment. It is
    set by the process, because Celery, which carries them, may not be imported here (decisions D5a).
    """
    global _build_ask  # noqa: PLW0603  one process, one way to the workers
    _build_ask = ask


def rollouts_asked_by(ask: Callable[[int], None]) -> None:
    """Set the function that carries hints about rollouts from now on: `ask` is called with the id of the environment.
    It is set by the process, as the one for builds.
    """
    global _rollout_ask  # noqa: PLW0603  one process, one way to the workers
    _rollout_ask = ask


def _deliver(hint: Hint) -> None:
    kind, subject = hint
    if kind == "build":
        _build_ask(int(subject))
    elif kind == "rollout":
        _rollout_ask(int(subject))
    else:
        # Late: the library of Redis is loaded by who needs it, which few commands do.
        from controlplane.broker.client import redis_client  # noqa: PLC0415

        redis_client().publish(_CHANNELS[kind], str(subject))


_sender = HintSender(_deliver)


def hint_build(environment_id: int) -> None:
    """Tell the workers, over the broker, that a change of an environment waits for its build."""
    _sender.send(("build", environment_id))


def hint_rollout(environment_id: int) -> None:
    """Tell the workers, over the broker, that the rollout of an environment may open or go on. A lost hint costs the
    second until the sweeper looks (rollouts.md R12).
    """
    _sender.send(("rollout", environment_id))


def hint_published(environment_key: str) -> None:
    """Tell the ADS processes, over the broker, that an environment has a new snapshot."""
    _sender.send(("published", environment_key))


def hint_judge(environment_key: str) -> None:
    """Tell the workers, over the broker, that what clients on the candidate side of an environment's open rollout said
    is in the database now. Sent by ADS processes. A lost hint costs the second until the sweeper looks (rollouts.md
    R12).
    """
    _sender.send(("judge", environment_key))

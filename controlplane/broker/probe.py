"""Whether the broker answers, asked beside the request: a frozen Redis accepts connections and then says nothing.

A request waits for the answer a moment at most; after that it hears what was known before.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from controlplane.broker.client import redis_client

WAIT_S: Final = 0.3  # a probe that takes a second is a probe that fails
_FRESH_S: Final = 1.0

ANSWERS: Final = "ok"


class BrokerProbe:
    """Asks the broker whether it answers: at most one question at a time, in a thread of its own; its answer holds for
    a second.
    """

    def __init__(self, ask: Callable[[], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._said = "not asked yet"
        self._said_at = float("-inf")
        self._asking: threading.Event | None = None

    def state(self) -> str:
        """The broker's state: `ok`, or what is the matter, as a sentence."""
        with self._lock:
            if self._clock() - self._said_at < _FRESH_S:
                return self._said
            if self._asking is None:
                self._asking = threading.Event()
                threading.Thread(target=self._run, args=(self._asking,), name="broker-probe", daemon=True).start()
            asking = self._asking
        if asking.wait(WAIT_S):
            return self._said
        return "does not answer"

    def _run(self, asking: threading.Event) -> None:
        try:
            self._ask()
            said = ANSWERS
        except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
            said = f"cannot be reached ({type(error).__name__})"
        with self._lock:
            self._said, self._said_at, self._asking = said, self._clock(), None
        asking.set()


probe = BrokerProbe(lambda: redis_client().ping())

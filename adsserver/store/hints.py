"""Listens on Redis: for "there is a new snapshot", and for those who watch a live tail. A hint carries nothing that is
believed: it only makes the loader look (P3). What watchers announce is sealed, and read elsewhere.
"""

import threading
from collections.abc import Callable

import structlog
from redis.exceptions import RedisError

from controlplane.broker.client import redis_client
from controlplane.broker.hints import PUBLISHED_CHANNEL
from controlplane.tail.sealed import INTERESTS

log = structlog.get_logger(__name__)

_WAIT_S = 1.0  # how long one read waits; bounds how late `stop` is noticed
_RETRY_S = 1.0


class HintListener:
    """Listens for hints about new snapshots, and for watchers of live tails, in one thread with one subscription;
    without Redis it tries again every second and says so once.

    on_hint: called when there may be a new snapshot.
    on_interest: called with the bytes that somebody announced on the channel of interests.
    """

    def __init__(self, on_hint: Callable[[], None], on_interest: Callable[[bytes], None]) -> None:
        self._on_hint = on_hint
        self._on_interest = on_interest
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hints", daemon=True)

    def start(self) -> None:
        """Start the thread that listens."""
        self._thread.start()

    def stop(self) -> None:
        """Stop within about a second; returns at once, without waiting for the thread."""
        self._stopping.set()

    def _run(self) -> None:
        connected = True
        while not self._stopping.is_set():
            try:
                self._listen()
            except (RedisError, OSError) as error:
                if connected:
                    log.warning(
                        "hints.lost", reason=str(error), consequence="snapshots are found by polling the database"
                    )
                connected = False
                self._stopping.wait(_RETRY_S)
            else:
                connected = True

    def _listen(self) -> None:
        with redis_client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]  # untyped there
            subscription.subscribe(PUBLISHED_CHANNEL, INTERESTS)
            # What was published while nobody listened is found by this look (reliability F2).
            self._on_hint()
            while not self._stopping.is_set():
                message = subscription.get_message(timeout=_WAIT_S)
                if message is None:
                    continue
                if message["channel"] == INTERESTS.encode():
                    self._on_interest(message["data"])
                else:
                    self._on_hint()

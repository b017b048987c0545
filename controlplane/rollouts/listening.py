"""Hears over Redis that clients on a candidate side said something, and looks at their rollout at once.

A hint carries nothing that is believed: it only makes the worker look, and without any the sweeper looks each second
(rollouts.md R12).
"""

import threading
from typing import Final

import structlog
from django.db import close_old_connections
from redis.exceptions import RedisError

from controlplane.broker.client import redis_client
from controlplane.broker.hints import JUDGE_CHANNEL
from controlplane.catalog.selectors import environment_list
from controlplane.rollouts.services import rollout_tick

log = structlog.get_logger(__name__)

_WAIT_S: Final = 1.0  # how long one read waits; bounds how late `stop` is noticed
_RETRY_S: Final = 1.0


class JudgeListener(threading.Thread):
    """Looks at the rollout of an environment whenever a hint names it; without Redis it tries again every second."""

    def __init__(self) -> None:
        super().__init__(name="judge-hints", daemon=True)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop within about a second; returns at once, without waiting for the thread."""
        self._stopping.set()

    def run(self) -> None:
        """Listen until `stop` is called."""
        connected = True
        while not self._stopping.is_set():
            try:
                self._listen()
            except (RedisError, OSError) as error:
                if connected:
                    log.warning("judge_hints.lost", reason=str(error), consequence="rollouts are looked at each second")
                connected = False
                self._stopping.wait(_RETRY_S)
            else:
                connected = True

    def _listen(self) -> None:
        with redis_client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]  # untyped there
            subscription.subscribe(JUDGE_CHANNEL)
            while not self._stopping.is_set():
                message = subscription.get_message(timeout=_WAIT_S)
                keys = set()
                while message is not None:
                    # What several clients said at once is looked at once.
                    keys.add(message["data"])
                    message = subscription.get_message(timeout=0.0)
                if keys:
                    self._look(keys)

    def _look(self, keys: set[bytes]) -> None:
        close_old_connections()
        try:
            for environment in environment_list():
                if environment.key.encode() in keys:
                    rollout_tick(environment_id=environment.id)
        except Exception:
            log.exception("judge_hints.failed")
        finally:
            close_old_connections()

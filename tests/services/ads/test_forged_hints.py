"""Whoever can write to Redis can make a server look at the database, and nothing else (reliability P3, threat 18)."""

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from adsserver.store.hints import HintListener
from controlplane.broker.client import redis_client
from controlplane.broker.hints import PUBLISHED_CHANNEL
from tests.support.valkey import valkey
from tests.support.waiting import eventually

FORGED = (
    b"",
    b"\xff\xfe not text",
    pickle.dumps({"environment": "default", "epoch": 10**9}),
    b'{"environment": "default", "epoch": 999999999, "lineage": "x"}',
    b'{"root": "' + b"00" * 16 + b'"}',
    b"x" * 1_000_000,
)


@pytest.fixture
def broker(settings: Settings) -> Iterator[None]:
    with valkey() as server:
        settings.PARLEY = replace(settings.PARLEY, redis_url=server.url)
        redis_client.cache_clear()
        yield
    redis_client.cache_clear()


@pytest.mark.usefixtures("broker")
def test_hint__of_any_content__makes_the_loader_look_and_says_nothing_to_it() -> None:
    looked = threading.Semaphore(0)
    listener = HintListener(looked.release, lambda _data: None)
    listener.start()
    try:
        assert looked.acquire(timeout=10)  # once, because something may have happened before
        sent = redis_client()
        eventually(lambda: sent.publish(PUBLISHED_CHANNEL, FORGED[0]) == 1, within_s=10)
        for data in FORGED:
            assert sent.publish(PUBLISHED_CHANNEL, data) == 1

        # Each is a reason to look, with nothing in hand; none ends the listener.
        assert all(looked.acquire(timeout=10) for _ in (FORGED[0], *FORGED))
    finally:
        listener.stop()
        listener._thread.join(10)  # before the broker goes

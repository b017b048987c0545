"""What an ADS process tells those who watch, without the process: facts that a test makes up, over a real Valkey."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from django.conf import settings
from django.test import override_settings

from adsserver.store.hints import HintListener
from adsserver.store.tail import Tap, TappedFacts
from controlplane.broker.client import redis_client
from controlplane.tail.sealed import INTERESTS
from tests.support.ads import MemoryFacts
from tests.support.facts import NothingSecret
from tests.support.valkey import Valkey, valkey
from tests.support.waiting import eventually


@dataclass
class Telling:
    """A broker, and the facts that are told over it."""

    broker: Valkey
    tap: Tap
    facts: TappedFacts

    def watched(self, *environments: str) -> None:
        """Wait until somebody watches these environments, and no others."""
        eventually(lambda: set(self.tap._queues), set(environments).__eq__, within_s=5)


@contextmanager
def telling() -> Iterator[Telling]:
    """Tell, to whoever watches, until the block ends; to stop listening takes up to a second."""
    with valkey() as broker, override_settings(PARLEY=replace(settings.PARLEY, redis_url=broker.url)):
        redis_client.cache_clear()
        tap = Tap(NothingSecret(), lambda channel, data: redis_client().publish(channel, data), events_per_s=50)
        listener = HintListener(lambda: None, tap.announced)
        tap.start()
        listener.start()
        eventually(lambda: broker.client().pubsub_numsub(INTERESTS)[0][1] == 1, within_s=10)
        try:
            yield Telling(broker, tap, TappedFacts(MemoryFacts(), tap))
        finally:
            tap.stop()
            listener.stop()
            listener._thread.join(10)
            redis_client.cache_clear()

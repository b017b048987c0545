"""What clients of the candidate side said is heard over the broker, and looked at at once."""

from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from controlplane.broker.client import redis_client
from controlplane.broker.hints import JUDGE_CHANNEL
from controlplane.database.aliases import READER
from controlplane.rollouts.listening import JudgeListener
from controlplane.rollouts.models import Rollout
from tests.services.rollouts.clients import Fleet, switch_on, write
from tests.support.manifests import cluster
from tests.support.valkey import valkey
from tests.support.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]


def test_judge_hint__it_names_an_environment__its_rollout_is_looked_at(fleet: Fleet, settings: Settings) -> None:
    switch_on()
    write(cluster("pay"))
    with valkey() as broker:
        settings.PARLEY = replace(settings.PARLEY, redis_url=broker.url)
        redis_client.cache_clear()
        listener = JudgeListener()
        listener.start()
        try:
            eventually(lambda: broker.client().publish(JUDGE_CHANNEL, "elsewhere") == 1, within_s=10)
            assert not Rollout.objects.exists()
            broker.client().publish(JUDGE_CHANNEL, "default")
            eventually(Rollout.objects.exists, within_s=10)
        finally:
            listener.stop()
            listener.join()
            redis_client.cache_clear()

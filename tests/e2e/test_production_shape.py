"""The same scenarios against PostgreSQL and a separate Valkey over TCP, with two ADS processes and two workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios import envoy_follows_changes, grpc_client_is_served, one_of_many_writers_wins
from tests.support.postgres import postgresql
from tests.support.stack import Parley, running_apart
from tests.support.valkey import valkey

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("production")]


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    home = tmp_path_factory.mktemp("production") / "home"
    with (
        postgresql() as database,
        valkey() as redis,
        running_apart(home, {"DATABASE_URL": database, "REDIS_URL": redis.url}, ads=2, workers=2) as running,
    ):
        yield running


@pytest.mark.parametrize(("api_type", "replica"), [("GRPC", 0), ("DELTA_GRPC", 1)])
def test_envoy__at_either_replica__traffic_follows(parley: Parley, tmp_path: Path, api_type: str, replica: int) -> None:
    envoy_follows_changes(parley, tmp_path, api_type, ads_port=parley.ads_ports[replica])


@pytest.mark.parametrize("replica", [0, 1])
def test_grpc__at_either_replica__rpc_works_or_says_why(parley: Parley, replica: int) -> None:
    grpc_client_is_served(parley, ads_port=parley.ads_ports[replica])


def test_put__two_hundred_at_once_with_if_match__one_wins_each_round(parley: Parley) -> None:
    one_of_many_writers_wins(parley, rounds=2, writers=200)

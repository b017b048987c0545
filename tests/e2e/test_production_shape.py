"""The same scenarios against PostgreSQL and a separate Valkey over TCP, with two ADS processes and two workers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios import envoy_follows_changes, grpc_client_is_served, one_of_many_writers_wins
from tests.support.postgres import postgresql
from tests.support.stack import Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("production")]


MISTAKE = {"PARLEY_ADS_ADRESS": "127.0.0.1:18000"}


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    home = tmp_path_factory.mktemp("production") / "home"
    with (
        postgresql() as database,
        valkey() as redis,
        running_apart(home, {"DATABASE_URL": database, "REDIS_URL": redis.url, **MISTAKE}, ads=2, workers=2) as running,
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


@pytest.mark.parametrize("name", ["web", "worker0", "ads0"])
def test_process__started_with_a_variable_that_nothing_reads__warns_of_it_in_one_line(
    parley: Parley, name: str
) -> None:
    log = parley.home.parent / f"{parley.home.name}-{name}.log"

    def warnings() -> list[dict[str, str]]:
        lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == "config.unknown"]

    (warning,) = eventually(warnings, within_s=30)
    assert warning["detail"] == "PARLEY_ADS_ADRESS is no variable of Parley; did you mean PARLEY_ADS_ADDRESS?"
    assert warning["level"] == "warning"

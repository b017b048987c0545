"""Real Envoy, real gRPC and a crowd of writers against what `make run` starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios import (
    envoy_follows_changes,
    grpc_client_is_served,
    one_of_many_writers_wins,
    rules_decide_what_a_grpc_client_reads,
)
from tests.support.stack import Parley, running_up

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("up") / "home with space") as running:
        yield running


@pytest.mark.shows("Envoy", "traffic follows changes over REST (CDS, EDS, LDS, RDS)", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_envoy__resources_change_over_rest__traffic_follows(parley: Parley, tmp_path: Path, api_type: str) -> None:
    envoy_follows_changes(parley, tmp_path, api_type, ads_port=parley.ads_port)


@pytest.mark.shows("gRPC for Python (C-core)", "calls work, or fail in Parley's words", "SotW")
def test_grpc__listener_exists_or_not__rpc_works_or_says_why(parley: Parley) -> None:
    grpc_client_is_served(parley, ads_port=parley.ads_port)


def test_grpc__access_rule_comes_and_goes__rpc_fails_in_its_words_or_works(parley: Parley) -> None:
    rules_decide_what_a_grpc_client_reads(parley, ads_port=parley.ads_port)


def test_put__two_hundred_at_once_with_if_match__one_wins_each_round(parley: Parley) -> None:
    one_of_many_writers_wins(parley, rounds=3, writers=200)

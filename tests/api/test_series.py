"""Series over REST: what is told, within which bounds, and to whom."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from controlplane.accounts.principal import Role, Scope
from controlplane.api.views import series as view
from controlplane.catalog.models import Environment
from controlplane.history.services import fleet_sample_add, tallies_add
from controlplane.history.values import FleetStates, Tallied, What
from tests.api.conftest import Caller, assert_problem, caller

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HERE = "environments/default/series"


@pytest.fixture(autouse=True)
def it_is_noon(monkeypatch: pytest.MonkeyPatch, environments: None) -> None:
    """Half a minute past noon, and what five minutes held."""
    monkeypatch.setattr(view, "database_now", lambda: NOON + timedelta(seconds=30))
    with connection.cursor() as cursor:
        for minute in (1, 2, 4):
            tallies = [
                Tallied("default", What.NACKS, "cluster", "envoy 1.40", minute, 0.0),
                Tallied("default", What.NACKS, "listener", "grpc-go 1.76", 1, 0.0),
                Tallied("default", What.ERRORS, "cluster", "NOT_FOUND", 10 * minute, 0.0),
            ]
            tallies_add(cursor, tallies, NOON - timedelta(minutes=minute))
    pk = Environment.objects.get(key="default").pk
    fleet_sample_add(states={pk: FleetStates(acked=3, disconnected=1)}, now=NOON - timedelta(minutes=2))


def values(api: Caller, query: str) -> dict[str, list[float | None]]:
    answer = api.get(f"{HERE}?from=2026-07-01T11:56:00Z&{query}")
    assert answer.status == 200, answer.content
    assert {len(each["values"]) for each in answer.json["series"]} == {answer.json["points"]}
    return {each["label"]: each["values"] for each in answer.json["series"]}


def test_series__of_clients__has_each_state_and_gaps_are_null(api: Caller) -> None:
    found = values(api, "what=clients")

    assert list(found) == ["nacked", "sent", "requested", "acked", "disconnected"]
    assert (found["acked"], found["nacked"]) == ([None, None, 3.0, None], [None, None, 0.0, None])


def test_series__of_nacks_and_errors__are_told_apart_as_asked_and_steps_are_sums(api: Caller) -> None:
    assert values(api, "what=nacks") == {"cluster": [4, None, 2, 1], "listener": [1, None, 1, 1]}
    assert values(api, "what=nacks&by=kind") == {"envoy 1.40": [4, None, 2, 1], "grpc-go 1.76": [1, None, 1, 1]}
    assert values(api, "what=errors&by=code&step=2m") == {"NOT_FOUND": [40, 30]}
    assert values(api, "what=errors&until=2026-07-01T11:57:00Z") == {"cluster": [40]}


def test_series__of_an_environment_in_which_nothing_was_refused__says_where_that_is_known(api: Caller) -> None:
    found = api.get("environments/prod/series?what=nacks&from=2026-07-01T11:56:00Z").json

    assert found["series"] == [{"label": "other", "values": [0, None, 0, 0]}]
    assert (found["since"], found["until"]) == ("2026-07-01T11:56:00.000Z", "2026-07-01T12:00:00.000Z")
    assert (found["by"], found["step_s"]) == ("type", 60)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("what=joy", "'what' cannot be 'joy'"),
        ("what=clients&by=type", "'by' cannot be 'type'"),
        ("what=errors&by=kind", "'by' cannot be 'kind'"),
        ("from=yesterday", "'from' must be a time"),
        ("from=15d", "'from' is longer ago than is kept: 14 days"),
        ("from=1h&until=2h", "'from' must be earlier than the end"),
        ("from=2d&step=60s", "'step' must be a multiple of 600 s"),
        ("from=13d&step=10m", "makes 1872 points; at most 1500"),
        ("step=0", "'step' must be a length of time"),
        ("step=99999999d", "'step' must be a length of time"),
        ("steps=60", "'steps' is not a parameter here"),
    ],
)
def test_series__that_cannot_be_told__says_which_parameter_is_wrong(api: Caller, query: str, says: str) -> None:
    answer = api.get(f"{HERE}?{query}")

    assert answer.status == 422
    assert says in " ".join(each["detail"] for each in answer.json["errors"])


def test_series__of_an_environment_of_another_tenant__is_not_there() -> None:
    stranger = caller(Scope(Role.VIEWER, "prod"))

    assert_problem(stranger.get(HERE), 404)
    assert stranger.get("environments/prod/series").status == 200

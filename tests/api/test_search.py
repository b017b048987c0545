"""`GET /search`: everything by its words, and nothing that the caller may not read."""

import pytest

from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.common.limits import Limit
from tests.api.conftest import Caller, assert_problem, caller
from tests.support.manifests import cluster, endpoints, parsed, tls_secret

pytestmark = pytest.mark.django_db


@pytest.fixture
def change(environments: None) -> str:
    manifests = (cluster("pay"), endpoints("pay", 80, address="10.9.8.7"), cluster("shop"), tls_secret("pay-key", "x"))
    edits = [Put(parsed(each)) for each in manifests]
    made = change_apply(environment_key="prod", edits=edits, actor=SYSTEM, message="pay by the bank")
    return made.change_id


def told(asker: Caller, query: str) -> list[tuple[str, str]]:
    return [(each["kind"], each["name"]) for each in asker.get(f"search?{query}").json["results"]]


def test_search__words_of_everything__are_found_and_no_more(api: Caller, change: str) -> None:
    answer = api.get("search?q=pay")

    assert [(each["kind"], each["type"], each["name"]) for each in answer.json["results"]] == [
        ("resource", "cluster", "pay"),
        ("resource", "endpoint", "pay"),
        ("resource", "secret", "pay-key"),
        ("change", "", "pay by the bank"),
    ]
    assert answer.json["results"][-1]["id"] == change
    assert answer.json["more"] == []
    assert answer.json["unsearched"] == {"older": 0, "sealed": 1}
    assert told(api, "q=pay&kind=change") == [("change", "pay by the bank")]
    assert told(api, "q=pay&kind=change,client") == [("change", "pay by the bank")]
    assert told(api, "q=pay&environment=default") == []
    assert api.get("search?q=pay&limit=1").json["more"] == ["resource"]


def test_search__contents__say_where_the_word_stands_unless_they_are_left_out(api: Caller, change: str) -> None:
    (hit,) = api.get("search?q=10.9.8.7").json["results"]

    assert (hit["type"], hit["name"], hit["excerpt"]) == ("endpoint", "pay", "10.9.8.7")
    assert hit["pointer"].endswith("/address")
    without = api.get("search?q=10.9.8.7&contents=false").json
    assert (without["results"], without["unsearched"]) == ([], None)


def test_search__question_that_is_wrong__422_with_all_that_is(api: Caller, environments: None) -> None:
    answer = api.get("search?kind=clister&limit=0&qq=x")

    assert_problem(answer, 422)
    assert len(answer.json["errors"]) == 4
    assert_problem(api.get("search?q=x&environment=nowhere"), 404)


def test_search__in_an_environment_of_others__finds_nothing_and_counts_nothing(change: str) -> None:
    stranger = caller(Scope(Role.ADMIN, "default"))

    answer = stranger.get("search?q=pay").json

    assert (answer["results"], answer["more"], answer["unsearched"]) == ([], [], {"older": 0, "sealed": 0})
    assert_problem(stranger.get("search?q=pay&environment=prod"), 404)


def test_search__with_limits__finds_resources_within_them_alone(change: str) -> None:
    limited = caller(Scope(Role.VIEWER, "prod", (Limit(types=("cluster",)),)))

    answer = limited.get("search?q=pay&environment=prod").json

    assert [(each["kind"], each["type"]) for each in answer["results"]] == [("resource", "cluster")]
    assert answer["unsearched"] == {"older": 0, "sealed": 0}
    assert told(limited, "q=10.9.8.7") == []

"""The list of changes over REST, and the filters by time and author that lists have in common."""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest

from controlplane.catalog.models import Change, Resource
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Caller, assert_problem
from tests.support.manifests import cluster, endpoints, route

pytestmark = pytest.mark.django_db
COUNT: Final = 12


@pytest.fixture
def written(api: Caller) -> list[Change]:
    """Changes of two environments, oldest first; each has the names that it wrote."""
    for number in range(COUNT):
        where, name = ("default", "prod")[number % 3 == 2], f"c{number:02}"
        tree = (
            route(name, "absent")
            if number == 5
            else endpoints(name, 80, address="10.0.0.1")
            if number % 4 == 0
            else cluster(name)
        )
        kind = "route" if number == 5 else "endpoint" if number % 4 == 0 else "cluster"
        made = api.put(
            f"environments/{where}/resources/{kind}/{name}?message=number+{number}&owner=o{number % 2}", tree
        )
        assert made.status == 202, made.json
    api.patch("environments/default", {"hold": "for the filter by kind"})
    return list(Change.objects.order_by("pk").select_related("environment").prefetch_related("revisions__resource"))


def ids(api: Caller, path: str) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    while path:
        page = api.get(path)
        assert page.status == 200, page.json
        found += [row["id"] for row in page.json["results"]]
        path = (page.json["next"] or "").partition("/api/v1/")[2]
    return found


def test_changes__each_filter__is_that_of_a_plain_loop(api: Caller, written: list[Change]) -> None:
    middle = written[6].at
    at = quote(middle.isoformat())
    filters: dict[str, Callable[[Change], object]] = {
        "environment=prod": lambda row: row.environment.key == "prod",
        "kind=policy": lambda row: row.kind == "policy",
        "owner=o1": lambda row: row.owner == "o1",
        "text=number+1": lambda row: "number 1" in row.message,
        "resource=cluster/c01": lambda row: [each.resource.name for each in row.revisions.all()] == ["c01"],
        "resource=c04": lambda row: [each.resource.name for each in row.revisions.all()] == ["c04"],
        f"since={at}": lambda row: row.at >= middle,
        f"until={at}&environment=default": lambda row: row.at <= middle and row.environment.key == "default",
    }

    for query, fits in filters.items():
        wanted = [str(row.public_id) for row in reversed(written) if fits(row)]
        assert 0 < len(wanted) < len(written), query
        assert ids(api, f"changes?limit=2&{query}") == wanted, query
    whose = written[5].author
    assert ids(api, f"changes?author={quote(whose)}") == [
        str(row.public_id) for row in reversed(written) if row.author == whose
    ]
    assert ids(api, "changes?author=nobody") == ids(api, "changes?until=1h") == []


def test_changes__pages__newest_first_each_once(api: Caller, written: list[Change]) -> None:
    assert ids(api, "changes?limit=5") == [str(row.public_id) for row in reversed(written)]


def test_changes__row__is_what_the_change_itself_says(api: Caller, written: list[Change]) -> None:
    undone = next(row for row in written if row.kind == "resources" and row.environment.key == "default")
    api.post(f"changes/{undone.public_id}/undo", {"reason": "wrong"})

    newest, *rest = api.get("changes?environment=default").json["results"]
    [row] = [each for each in rest if each["id"] == str(undone.public_id)]
    itself = api.get(f"changes/{undone.public_id}").json
    same = row.keys() & itself.keys() - {"undone_by", "status"}
    assert {key: row[key] for key in same} == {key: itself[key] for key in same}
    assert (newest["undoes"], row["undone_by"], row["status"]) == (row["id"], newest["id"], "taken_back")


def test_changes__of_an_environment_that_one_may_not_see__are_not_there(
    as_role: Callable[[str, str | None], Caller], written: list[Change]
) -> None:
    reader = as_role("viewer", "prod")

    assert ids(reader, "changes") == [str(row.public_id) for row in reversed(written) if row.environment.key == "prod"]
    assert_problem(reader.get("changes?environment=default"), 404)
    assert_problem(reader.get("changes?environment=never-was"), 404)


@pytest.mark.parametrize(
    "path",
    [
        *(f"changes?{each}" for each in ("since=soon", "since=1h&until=2h", "kind=fruit", "after=x", "findings=maybe")),
        *(f"{each}?since=1h&until=2h" for each in ("audit", "incidents", "environments/default/resources")),
        "environments/default/resources?findings=some",
        "changes?autor=dana",
    ],
)
def test_list__filter_that_cannot_be__422_that_names_it(path: str, api: Caller) -> None:
    answer = api.get(path)

    assert_problem(answer, 422)
    assert answer.json["errors"][0]["detail"].startswith("The parameter '")


def test_resources_and_audit__by_time_author_and_findings(api: Caller, written: list[Change]) -> None:
    here = "environments/default/resources"
    rows = list(Resource.objects.filter(environment__key="default").select_related("head__change").order_by("pk"))
    middle = rows[3].head.at  # type: ignore[union-attr]
    at = quote(middle.isoformat())

    def names(query: str) -> set[str]:
        return {row["name"] for row in api.get(f"{here}?{query}").json["results"]}

    assert names(f"since={at}") == {row.name for row in rows if row.head.at >= middle}  # type: ignore[union-attr]
    assert names(f"until={at}") == {row.name for row in rows if row.head.at <= middle}  # type: ignore[union-attr]
    assert names("author=nobody") == set()
    assert names("findings=with") | names("findings=without") == {row.name for row in rows}
    assert names("findings=with") == {row.name for row in rows if row.head.findings}  # type: ignore[union-attr]
    event = AuditEvent.objects.order_by("pk")[5]
    found = api.get(f"audit?until={quote(event.at.isoformat())}&since={quote(event.at.isoformat())}").json["results"]
    assert [row["id"] for row in found] == [event.pk]

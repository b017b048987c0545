"""Lists: each filter shows what a plain loop over the rows finds, sorted pages neither repeat a row nor lose one, and a
file has the same rows.
"""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

import pytest
from django.test import Client as Browser
from django.utils import timezone

from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.catalog.expiry import findings_at
from controlplane.catalog.models import Change, Environment, Resource
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.clients.models import Client
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.journal.models import AuditEvent
from tests.services.catalog.test_expiry import secret
from tests.support.manifests import cluster, endpoints, parsed, route
from tests.support.principals import somebody
from tests.web.conftest import HOSTILE, page
from xdscore.schema import Media, ParsedResource, parse, read_manifests

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
AUTHORS: Final = ("dana", "kim", "ola")
OWNERS: Final = ("pay", "web")
COUNT: Final = 61  # more than a page
_NEXT: Final = re.compile(r'href="([^"]+)"[^>]*rel="next"|rel="next" href="([^"]+)"')


@pytest.fixture
def many(two_environments: None) -> None:
    """Resources of three authors and two owners, and as many changes."""
    for number in range(COUNT):
        author = somebody(AUTHORS[number % 3], ADMIN_SCOPES)
        tree = endpoints(f"c{number:02}", 80) if number % 4 == 0 else cluster(f"c{number:02}")
        tree = route(f"c{number:02}", "absent") if number % 10 == 7 else tree
        change_apply(
            environment_key="default",
            edits=[Put(parsed(tree))],
            actor=author,
            message=f"number {number}",
            terms=Terms(OWNERS[number % 2]),
        )
    # One expires soon after it was written, the other one did when nobody looked any more.
    then = timezone.now() - timedelta(days=60)
    for name, now in (("soon", timezone.now()), ("since-then", then)):
        [manifest], _ = read_manifests(json.dumps([secret(ends=timedelta(days=9), name=name)]).encode(), Media.JSON)
        made = parse(manifest, now=now)
        assert isinstance(made, ParsedResource)
        change_apply(environment_key="default", edits=[Put(made)], actor=somebody("kim", ADMIN_SCOPES))


def walk(browser: Browser, path: str) -> list[str]:
    """The pages from this one to the last, as somebody who follows the link to the next one."""
    found = [page(browser, path)]
    while match := _NEXT.search(found[-1]):
        base = path.partition("?")[0]
        found.append(page(browser, base + html.unescape(match[1] or match[2])))
        assert len(found) < 20
    return found


def names(pages: Sequence[str], pattern: str) -> list[str]:
    """What stands in the first column of each row."""
    rows = (each for shown in pages for each in re.findall(r"<tbody>.*</tbody>", shown, re.DOTALL))
    return [html.unescape(name) for body in rows for name in re.findall(pattern, body)]


def file_of(browser: Browser, path: str, kind: str = "json") -> Any:
    answer = browser.get(f"{path}{'&' if '?' in path else '?'}file={kind}")
    assert answer.status_code == 200, answer.content
    assert answer["Content-Disposition"].startswith("attachment; filename=")
    assert answer["Cache-Control"] == "private, no-store"
    text = answer.content.decode()
    return json.loads(text) if kind == "json" else list(csv.DictReader(io.StringIO(text, newline="")))


def held_up(
    browser: Browser,
    path: str,
    pattern: str,
    rows: Sequence[Any],
    key: Callable[[Any], str],
    *,
    filters: dict[str, Callable[[Any], object]],
    orders: dict[str, Callable[[Any], Any]],
    column: str,
    cut: int | None = None,
) -> Iterator[str]:
    """What is wrong with a list, for each filter and order. `rows`: what a plain loop looks at; `key`: what of a row
    stands in its line; `column`: where the file has the same, of which the list
    shows `cut` characters.
    """
    for query, fits in filters.items():
        wanted = sorted(key(row) for row in rows if fits(row))
        shown = sorted(names(walk(browser, f"{path}?{query}"), pattern))
        told = sorted(str(row[column])[:cut] for row in file_of(browser, f"{path}?{query}"))
        if not wanted or len(wanted) == len(rows):
            yield f"{query}: the filter tells nothing apart: {len(wanted)} of {len(rows)}"
        if shown != wanted:
            yield f"{query}: {shown} shown, {wanted} fit"
        if told != wanted:
            yield f"{query}: {told} in the file, {wanted} fit"
    for word, value in orders.items():
        for falls in (False, True):
            shown = names(walk(browser, f"{path}?sort={'-' if falls else ''}{word}"), pattern)
            if sorted(shown) != sorted(key(row) for row in rows):
                yield f"sort={word}: a row is repeated or lost"
            by_key = {key(row): value(row) for row in rows}
            values = [by_key[each] for each in shown if each in by_key]
            if values != sorted(values, reverse=falls):
                yield f"sort={word}, falls={falls}: {values}"


def test_resources__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser, many: None) -> None:
    rows, now = list(Resource.objects.select_related("head__change")), timezone.now()
    middle = rows[30].head.at  # type: ignore[union-attr]
    at = quote(middle.isoformat())

    faults = held_up(
        admin,
        "/e/default/resources",
        r'<th scope="row"><a href="[^"]+">([^<]+)</a>',
        rows,
        lambda row: str(row.name),
        filters={
            "name=c1": lambda row: "c1" in row.name,
            "type=endpoint": lambda row: row.type == "endpoint",
            "owner=pay": lambda row: row.owner == "pay",
            "author=kim": lambda row: row.head.change.author == "kim",
            f"since={at}": lambda row: row.head.at >= middle,
            f"until={at}": lambda row: row.head.at <= middle,
            f"since={at}&until={at}": lambda row: row.head.at == middle,
            "findings=with": lambda row: findings_at(row.head, (row.type, row.name), now),
            "findings=without&type=route": lambda row: row.type == "route",
            "type=cluster&owner=web&author=ola&since=1h": lambda row: (
                (row.type, row.owner, row.head.change.author) == ("cluster", "web", "ola")
            ),
        },
        orders={
            "name": lambda row: row.name,
            "type": lambda row: row.type,
            "owner": lambda row: row.owner,
            "revision": lambda row: row.counter,
            "changed": lambda row: row.head.at,
        },
        column="name",
    )

    assert list(faults) == []


def test_changes__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser, many: None) -> None:
    rows = list(Change.objects.filter(environment__key="default").prefetch_related("revisions__resource"))
    middle = rows[20].at
    at = quote(middle.isoformat())

    def wrote(change: Change) -> list[str]:
        return [f"{each.resource.type}/{each.resource.name}" for each in change.revisions.all()]

    faults = held_up(
        admin,
        "/e/default/changes",
        r'<a class="mono" href="/changes/([^"]{8})',
        rows,
        lambda row: str(row.public_id)[:8],
        filters={
            "text=number 1": lambda row: "number 1" in row.message,
            "text=c05": lambda row: any("c05" in name for name in wrote(row)),
            "author=dana": lambda row: row.author == "dana",
            "owner=web": lambda row: row.owner == "web",
            "resource=c08": lambda row: any(name.endswith("/c08") for name in wrote(row)),
            "resource=endpoint/c08": lambda row: "endpoint/c08" in wrote(row),
            f"since={at}": lambda row: row.at >= middle,
            f"until={at}&author=ola": lambda row: row.at <= middle and row.author == "ola",
        },
        orders={
            "time": lambda row: row.generation,
            "author": lambda row: row.author,
            "kind": lambda row: row.kind,
            "resources": lambda row: len(row.revisions.all()),
        },
        column="change",
        cut=8,
    )

    assert list(faults) == []


def test_clients__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser, fleet: object) -> None:
    environment, now = Environment.objects.get(key="default"), timezone.now()
    for number in range(COUNT):
        Client.objects.create(
            id=f"{number:032x}",
            environment=environment,
            node_id=f"gone-{number:02}",
            node_cluster=f"shop-{number % 5}",
            family=("envoy", "grpc-go", "other")[number % 3],
            first_seen=now - timedelta(days=2),
            last_seen=now - timedelta(minutes=10 * number + 5),
        )
    rows = list(Client.objects.all())

    def seen(row: Client) -> Any:
        return now if row.node_id.startswith("node-") else row.last_seen

    faults = held_up(
        admin,
        "/e/default/clients",
        r'<th scope="row"><a class="foreign" href="[^"]+">([^<]+)</a>',
        rows,
        lambda row: str(row.node_id),
        filters={
            "q=shop-2": lambda row: row.node_cluster == "shop-2",
            "family=grpc-go": lambda row: row.family == "grpc-go",
            "state=gone": lambda row: row.node_id.startswith("gone"),
            "state=refusing": lambda row: row.node_id == "node-1",
            "since=2 h": lambda row: seen(row) >= now - timedelta(hours=2),
            "until=2h": lambda row: seen(row) <= now - timedelta(hours=2),
            "state=gone&since=3h&until=2h": lambda row: (
                now - timedelta(hours=3) <= seen(row) <= now - timedelta(hours=2)
            ),
        },
        orders={
            "name": lambda row: row.node_id,
            "family": lambda row: row.family,
            "seen": seen,
            "first": lambda row: row.first_seen,
        },
        column="node_id",
    )

    assert list(faults) == []


def test_incidents__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser, fleet: object) -> None:
    [first], now = Incident.objects.all(), timezone.now()
    for number in range(COUNT):
        first.pk = None
        first.__dict__.update(
            public_id=f"{number:08x}-0000-4000-8000-000000000000",
            fingerprint=f"{number:032x}",
            type=("cluster", "route")[number % 2],
            name=f"c{number:02}",
            state=("open", "acknowledged", "resolved", "ignored")[number % 4],
            cause="loss" if number % 5 == 0 else "nack",
            author=AUTHORS[number % 3],
            nacked=number % 7,
            first_at=now - timedelta(hours=number + 1),
            last_at=now - timedelta(minutes=10 * number + 5),
        )
        first._state.adding = True
        first.save(force_insert=True)
    rows = list(Incident.objects.all())
    unresolved = [row for row in rows if row.state in ("open", "acknowledged")]

    list_of = {
        "path": "/e/default/incidents",
        "pattern": r'<a href="/incidents/([^"]{8})',
        "key": lambda row: str(row.public_id)[:8],
        "column": "incident",
        "cut": 8,
    }
    faults = held_up(
        admin,
        rows=unresolved,
        filters={
            "q=c0": lambda row: "c0" in row.name,
            "type=route": lambda row: row.type == "route",
            "cause=loss": lambda row: row.cause == "loss",
            "author=kim": lambda row: row.author == "kim",
            "since=2h": lambda row: row.last_at >= now - timedelta(hours=2),
            "until=2 h&type=cluster": lambda row: row.last_at <= now - timedelta(hours=2) and row.type == "cluster",
        },
        orders={
            "name": lambda row: row.name,
            "clients": lambda row: row.nacked,
            "state": lambda row: row.state,
            "first": lambda row: row.first_at,
            "last": lambda row: row.last_at,
        },
        **list_of,  # type: ignore[arg-type]
    )

    assert list(faults) == []
    states = {f"state={state}": (lambda row, state=state: row.state == state) for state in ("open", "resolved")}
    assert list(held_up(admin, rows=rows, filters=states, orders={}, **list_of)) == []  # type: ignore[arg-type]
    assert len(names(walk(admin, "/e/default/incidents?state=all"), list_of["pattern"])) == len(rows)  # type: ignore[arg-type]


def test_audit__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser, many: None) -> None:
    rows = list(AuditEvent.objects.all())
    middle = rows[30].at
    at = quote(middle.isoformat())

    faults = held_up(
        admin,
        "/audit",
        r'<tr id="event-(\d+)">',
        rows,
        lambda row: str(row.pk),
        filters={
            "actor=dana": lambda row: row.actor == "dana",
            "environment=default": lambda row: row.environment == "default",
            "verb=environment.created": lambda row: row.verb == "environment.created",
            f"since={at}": lambda row: row.at >= middle,
            f"actor=kim&until={at}": lambda row: row.actor == "kim" and row.at <= middle,
        },
        orders={"time": lambda row: row.pk},
        column="id",
    )

    assert list(faults) == []


LISTS: Final = (
    *(f"/e/default/{each}" for each in ("resources", "changes", "clients", "incidents", "change-sets", "rollouts")),
    *("/e/default/snapshots", "/audit", "/messages"),
)


@pytest.mark.parametrize("path", LISTS)
def test_list__what_cannot_be_read__is_said_beside_its_field_and_nothing_is_listed(
    path: str, admin: Browser, fleet: object
) -> None:
    typed = "<b>yesterday"

    shown = page(admin, f"{path}?since={quote(typed)}", 422)

    assert 'value="&lt;b&gt;yesterday"' in shown
    assert 'aria-describedby="f-since-problem"' in shown
    assert "or an age such as 2 h." in shown
    assert "<tbody>" not in shown
    assert "cannot be sorted by &#x27;taste&#x27;" in page(admin, f"{path}?sort=taste", 422)


@pytest.mark.parametrize("path", LISTS)
def test_list__hostile_question__is_no_fault_and_is_escaped(path: str, admin: Browser, fleet: object) -> None:
    names_of = ("name", "q", "text", "author", "owner", "state", "type", "since", "until", "sort", "actor", "for")
    for word in (HOSTILE, "' OR 1=1 --", "%00", "=1+1", "x" * 5_000, "999999999w", "0001-01-01", "9999-12-31"):
        for asked in (dict.fromkeys(names_of, word), {"since": word}, {"q": word, "text": word, "name": word}):
            answer = admin.get(path, asked)
            assert answer.status_code in (200, 404, 422), (asked, word)
            assert b"<img src=x" not in answer.content


def test_file__of_a_list__is_in_its_order_and_begins_no_formula(admin: Browser, many: None) -> None:
    told = file_of(admin, "/e/default/changes?sort=time&author=dana", "csv")
    change_apply(
        environment_key="default",
        edits=[Put(parsed(cluster("formula")))],
        actor=somebody("=cmd", ADMIN_SCOPES),
        message="=HYPERLINK(1)",
    )

    [written] = file_of(admin, "/e/default/changes?text=HYPERLINK", "csv")
    [same] = file_of(admin, "/e/default/changes?text=HYPERLINK", "json")
    assert [row["message"] for row in told] == [f"number {number}" for number in range(0, COUNT, 3)]
    assert (written["message"], written["author"]) == ("'=HYPERLINK(1)", "'=cmd")
    assert same["message"] == "=HYPERLINK(1)"


def test_file__of_more_than_fits__is_not_cut_but_turned_down(
    admin: Browser, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.console.lists.MAX_ROWS", COUNT - 1)

    shown = page(admin, "/e/default/resources?file=csv", 422)

    assert f"more than {COUNT - 1} rows" in shown
    assert len(file_of(admin, "/e/default/resources?type=endpoint")) == 16
    page(admin, "/e/default/resources?file=xlsx", 422)


@pytest.mark.parametrize("path", LISTS)
def test_file__somebody_of_another_environment__has_none_of_it(path: str, person: Any, fleet: object) -> None:
    stranger = person(Role.ADMIN, "prod")

    answer = stranger.get(f"{path}?file=csv")

    assert answer.status_code == (404 if path.startswith("/e/") else 200)
    assert b"pay" not in answer.content


def test_rows__dense__are_so_for_whoever_chose_it(admin: Browser) -> None:
    assert 'data-rows="roomy"' in page(admin, "/e/default/resources")

    answer = admin.post("/rows", {"rows": "dense", "next": "/e/default/resources?type=cluster"})
    foreign = admin.post("/rows", {"rows": "<b>", "next": "//evil.example"})

    assert (answer["Location"], foreign["Location"]) == ("/e/default/resources?type=cluster", "/")
    shown = page(admin, "/e/default/resources")
    assert 'data-rows="dense"' in shown
    assert 'value="roomy" aria-pressed="true"' in shown


def test_export__as_yaml__has_what_the_list_shows(admin: Browser, many: None) -> None:
    asked = "type=cluster&author=ola&since=1h"
    shown = names(walk(admin, f"/e/default/resources?{asked}"), r'<th scope="row"><a href="[^"]+">([^<]+)</a>')

    exported = admin.get(f"/e/default/export?{asked}").content.decode()

    assert sorted(re.findall(r"\bname: (c\d\d)", exported)) == sorted(shown) != []
    page(admin, "/e/default/export?since=yesterday", 422)

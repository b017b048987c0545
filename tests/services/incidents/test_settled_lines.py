"""The log says once of each change how it ended, under the id of the request that made it."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import SYSTEM
from controlplane.builder.services import build
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import change_apply
from controlplane.catalog.undoing import GoesBack
from controlplane.catalog.values import Put
from controlplane.clients.clock import database_now
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest, settled_lines
from tests.services.incidents.fleet import Fleet, held
from tests.support.facts import acknowledged
from tests.support.manifests import cluster, parsed

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


def put(name: str, request_id: str) -> str:
    edits = [Put(parsed(cluster(name)))]
    made = change_apply(environment_key="default", edits=edits, actor=SYSTEM, request_id=request_id)
    build(environment_id=Environment.objects.get(key="default").pk)
    return made.change_id


def look_after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever says how changes ended look so many seconds after now."""
    monkeypatch.setattr(settled_lines, "database_now", lambda: database_now() + timedelta(seconds=seconds))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> "Lines":
    caplog.set_level(logging.INFO)
    look_after(2, monkeypatch)
    digest()  # of what is there from the start
    return Lines(caplog)


class Lines:
    """What was logged of this event about changes that a request made."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __call__(self, event: str = "change.settled") -> list[dict[str, Any]]:
        said = [each.msg for each in self._caplog.records if isinstance(each.msg, dict)]
        return [each for each in said if each["event"] == event and each["request_ids"]]


def test_change__settled__is_told_once_with_what_clients_answered(lines: Lines) -> None:
    fleet = Fleet(2)
    change = put("pay", "ci-17")
    response = fleet.send(held("pay", 1))
    fleet.buffer.learnt(fleet.streams[0], acknowledged(response))
    fleet.write()
    digest()
    assert lines() == []

    fleet.buffer.learnt(fleet.streams[1], acknowledged(response))
    fleet.write()
    digest()
    digest()

    [line] = lines()
    assert (line["changes"], line["request_ids"], line["level"]) == ([change], ["ci-17"], "info")
    assert {key: line[key] for key in ("state", "clients", "acked", "nacked", "silent")} == {
        "state": "published",
        "clients": 2,
        "acked": 2,
        "nacked": 0,
        "silent": 0,
    }


def test_change__refused__is_told_under_its_request_by_refusal_incident_and_end(lines: Lines) -> None:
    fleet = Fleet(1)
    change = put("pay", "ci-18")
    response = fleet.send(held("pay", 1))

    fleet.refuse(response, BAD, suspects=(held("pay", 1),))
    digest()

    for event in ("change.refused", "incident.opened", "change.settled"):
        [line] = lines(event)
        assert (line["changes"], line["request_ids"], line["level"]) == ([change], ["ci-18"], "warning")
    assert (lines("change.refused")[0]["name"], lines("change.refused")[0]["clients"]) == ("pay", 1)
    assert lines()[0]["nacked"] == 1


def test_changes__one_is_open__the_others_are_told_and_it_is_later(lines: Lines) -> None:
    fleet = Fleet(1)
    first = put("pay", "ci-1")
    response = fleet.send(held("pay", 1))
    # No client sees a difference, so that nobody answers.
    second = change_apply(
        environment_key="default", edits=[], actor=SYSTEM, back=GoesBack(hold="a freeze"), request_id="ci-2"
    )
    build(environment_id=Environment.objects.get(key="default").pk)

    digest()
    assert [line["changes"] for line in lines()] == [[second.change_id]]

    fleet.buffer.learnt(fleet.streams[0], acknowledged(response))
    fleet.write()
    digest()
    assert [line["changes"] for line in lines()] == [[second.change_id], [first]]


def test_changes__older_than_anybody_waits_for__are_passed_over(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    put("pay", "ci-1")
    look_after(360, monkeypatch)
    digest()
    look_after(2, monkeypatch)
    digest()

    assert Change.objects.exclude(request_id="").count() == 1
    assert lines() == []


def test_change__answered_just_now__is_looked_at_once_answers_are_stored(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(1)
    change = put("pay", "ci-1")
    fleet.buffer.learnt(fleet.streams[0], acknowledged(fleet.send(held("pay", 1))))
    fleet.write()

    look_after(0, monkeypatch)
    digest()
    assert lines() == []

    look_after(2, monkeypatch)
    digest()
    assert [line["changes"] for line in lines()] == [[change]]


def test_changes__more_than_are_read_together__are_all_told(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled_lines, "_READ_TOGETHER", 2)
    fleet = Fleet(1)
    names = [f"pay-{number}" for number in range(5)]
    changes = [put(name, f"ci-{name}") for name in names]
    fleet.buffer.learnt(fleet.streams[0], acknowledged(fleet.send(*(held(name, 1) for name in names))))
    fleet.write()

    digest()

    assert [line["changes"] for line in lines()] == [[each] for each in changes]


def test_changes__settle_together__cost_as_many_queries_as_one(lines: Lines) -> None:
    fleet = Fleet(1)

    def told(count: int) -> int:
        """Let one build publish so many changes, and return how many queries it took to say how they ended."""
        before = len(lines())
        names = [f"pay-{count}-{number}" for number in range(count)]
        for name in names:
            edits = [Put(parsed(cluster(name)))]
            change_apply(environment_key="default", edits=edits, actor=SYSTEM, request_id=f"ci-{name}")
        build(environment_id=Environment.objects.get(key="default").pk)
        fleet.buffer.learnt(fleet.streams[0], acknowledged(fleet.send(*(held(name, 1) for name in names))))
        fleet.write()
        with CaptureQueriesContext(connection) as queries:
            settled_lines.settled_told()
        assert len(lines()) == before + count
        # A statement takes so many parameters, and changes may have written more names.
        assert not any(f"'{name}'" in query["sql"] for query in queries for name in names)
        return len(queries)

    assert told(12) <= told(1) + 1  # the sets of what clients have are stored in parts

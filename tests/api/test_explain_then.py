"""Explain of a time: by the snapshot that was the newest then, and by what the client had then (truth.md H6)."""

from datetime import datetime, timedelta

import pytest
from django.db.models import F

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.api.answers import moment
from controlplane.catalog.services import environment_default_ensure
from controlplane.clients.clock import database_now
from controlplane.clients.models import HoldingMove, Nack, Stream, Subscription
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.api.conftest import Caller, assert_problem, caller
from tests.api.test_explain import BAD, asked, rung, states
from tests.api.test_holdings import fleet_at_r1, moved_to_r2
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    return caller(*ADMIN_SCOPES)


def earlier(minutes: int) -> datetime:
    """Everything that was published and had so far happens so much earlier; the time that is now so long ago."""
    back = timedelta(minutes=minutes)
    SnapshotRow.objects.update(at=F("at") - back)
    Stream.objects.update(opened_at=F("opened_at") - back, closed_at=F("closed_at") - back)
    Subscription.objects.update(held_at=F("held_at") - back)
    HoldingMove.objects.update(at=F("at") - back)
    Nack.objects.update(at=F("at") - back)
    return database_now() - back


@pytest.fixture
def day(api: Caller) -> dict[str, datetime]:
    """When each came, 10 minutes after the other: r1 of `pay`, which `node-1` takes and asks for by name; r2, which it
    refuses; that `node-1` left. All of it is in the past.
    """
    fleet = fleet_at_r1("pay", "cart")
    one = fleet.join("pay", node_id="node-1")
    fleet.ack()
    fleet.write()
    before = [earlier(10)]
    moved_to_r2(fleet)
    fleet.nack(one, BAD)
    fleet.write()
    before = [each - timedelta(minutes=10) for each in before] + [earlier(10)]
    fleet.leave(one)
    fleet.write()
    before = [each - timedelta(minutes=10) for each in before] + [earlier(10)]
    return dict(zip(("taken", "refused", "left"), before, strict=True))


def at(moment_of: datetime) -> str:
    """The question five minutes after a moment, as RFC 3339."""
    return f"&at={moment(moment_of + timedelta(minutes=5))}"


def test_explain__at_a_time__by_the_snapshot_of_then_and_what_the_client_had_then(
    api: Caller, day: dict[str, datetime]
) -> None:
    taken, refused, left = (asked(api, more=at(each)) for each in day.values())

    when = day["taken"] + timedelta(minutes=5)
    assert (taken["answer"], taken["at"], taken["time"]) == ("yes", 1, moment(when))
    assert taken["sentence"].startswith(
        f"As of {when:%Y-%m-%d %H:%M:%S} UTC, when snapshot 1 was served: Cluster 'pay'"
    )
    assert (states(taken), rung(taken, 8)) == ("oooooooo", "It runs r1.")
    assert "revision r1, written by dana" in rung(taken, 4)
    assert (refused["answer"], refused["at"], states(refused)) == ("no", 2, "oooooofo")
    assert (
        "when snapshot 2 was served: It refused r2 and goes on with r1. It refused this content" in refused["sentence"]
    )
    assert BAD in rung(refused, 7)
    assert (left["answer"], states(left)[2]) == ("unknown", "u")
    assert "No stream of it is known that was open at" in left["sentence"]
    assert [each["next"] for each in (taken, refused, left)] == [[], [], []]


def test_explain__at_a_time_when_it_did_not_ask_for_the_name__no_even_if_it_does_now(
    api: Caller, day: dict[str, datetime]
) -> None:
    document = asked(api, "cart", more=at(day["taken"]))

    assert (document["answer"], states(document)[2]) == ("no", "f")
    assert document["sentence"].endswith("Connected then, but it did not ask for cluster 'cart'.")


def test_explain__at_a_time_of_which_it_is_not_kept_what_clients_had__unknown_with_the_reason(
    api: Caller, day: dict[str, datetime]
) -> None:
    earlier(25 * 60)
    long_ago = at(day["taken"] - timedelta(hours=25))

    document = asked(api, more=long_ago)

    assert (document["answer"], document["at"], states(document)[2]) == ("unknown", 1, "u")
    assert document["sentence"].endswith("Nobody knows any more: what clients had is kept for 24 h.")
    assert asked(api, more=long_ago, client="")["answer"] == "yes"
    assert asked(api, "lost", more=long_ago)["answer"] == "no"  # nobody could have it


def test_explain__at_a_time_whose_moves_are_forgotten__unknown_with_the_reason(
    api: Caller, day: dict[str, datetime]
) -> None:
    HoldingMove.objects.all().delete()

    document = asked(api, more=at(day["taken"]))

    assert (document["answer"], states(document)[2]) == ("unknown", "u")
    assert document["sentence"].endswith("Nobody knows any more: what clients had is kept for 24 h.")


def test_explain__at_a_time_of_which_there_is_no_telling_what_was_published__says_why(
    api: Caller, day: dict[str, datetime]
) -> None:
    def told(moment_of: datetime) -> tuple[int, str]:
        answer = api.get(f"explain?type=cluster&name=pay{at(moment_of)}")
        return answer.status, answer.json["detail"]

    before = told(day["taken"] - timedelta(hours=1))
    future = told(database_now() + timedelta(hours=1))
    publish(cluster("third"))
    SnapshotRow.objects.filter(epoch=2).delete()
    between = told(day["refused"])
    SnapshotRow.objects.filter(epoch=1).delete()
    older = told(day["taken"])

    assert [status for status, _ in (before, future, between, older)] == [404, 422, 410, 410]
    assert before[1].startswith("Nothing was published in 'default' yet at 20")
    assert future[1].endswith("is in the future: what will be published then is not known.")
    assert between[1].endswith("is not kept any more.")
    assert older[1].endswith("is not kept any more.")


@pytest.mark.parametrize("text", ["yesterday", "24h", "2026-07-01T12:00:00", "0", "-1", "9" * 19])
def test_explain__at_what_is_neither_an_epoch_nor_a_time__422_in_words(api: Caller, text: str) -> None:
    answer = api.get(f"explain?type=cluster&name=pay&at={text}")

    assert_problem(answer, 422)
    assert "must be an epoch, or a time with its offset from UTC" in answer.content.decode()

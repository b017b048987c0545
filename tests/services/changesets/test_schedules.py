"""Schedules: published once at their time by whoever is alive, or told why not."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, Principal
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.freezes import Freeze
from controlplane.catalog.models import Change, Resource, Revision
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_lock, environment_update, lineage_renew
from controlplane.catalog.values import Put
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.selectors import SetDetail, change_set_get
from controlplane.changesets.services import (
    Times,
    change_set_approve,
    change_set_create,
    change_set_schedule,
    change_set_submit,
    change_sets_tick,
    publishing,
)
from controlplane.changesets.values import SetState
from controlplane.common.limits import Limit
from controlplane.database import failpoints
from controlplane.database.aliases import READER
from controlplane.journal.models import DomainEvent
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]

ADA = somebody("ada", ADMIN_SCOPES)
BOB = somebody("bob", ADMIN_SCOPES)
POINTS = ("change_set.read", "change_set.locked", "change_set.written")


class Died(BaseException):
    """The worker's process is gone. No handler of the product may see it."""


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm()


def proposed(name: str = "pay", *, by: Principal = ADA, expires: timedelta | None = None) -> str:
    until = timezone.now() + expires if expires is not None else None
    made = change_set_create(
        environment_key="default",
        title=f"a new {name}",
        edits=[Put(parsed(cluster(name)))],
        times=Times(None, until),
        actor=by,
    )
    change_set_submit(public_id=made, actor=by)
    change_set_approve(public_id=made, actor=BOB)
    return made


def due(public_id: str, *, by: Principal = ADA) -> str:
    change_set_schedule(public_id=public_id, not_before=timezone.now() - timedelta(seconds=1), actor=by)
    return public_id


def policy(**changes: object) -> None:
    before = environment_get(key="default").policy
    after = replace(before, **changes)  # type: ignore[arg-type]  # as each test has it
    environment_update(key="default", policy=after, before=before, actor=ADA)


def told(kind: str) -> list[str]:
    rows = DomainEvent.objects.filter(kind=f"change_set.{kind}").order_by("pk")
    return [row.payload["reason"] for row in rows]


def stands(public_id: str) -> SetDetail:
    return change_set_get(public_id=public_id)


@pytest.mark.parametrize("point", POINTS)
def test_worker__dies_anywhere__another_one_publishes_it_once(database: str, point: str) -> None:
    made = due(proposed())
    before = Change.objects.count()

    def die(name: str) -> None:
        if name == point:
            raise Died

    failpoints.arm(die)
    with pytest.raises(Died):
        change_sets_tick()
    assert stands(made).view.state is SetState.SCHEDULED
    assert Change.objects.count() == before
    failpoints.arm()
    for _ in range(3):
        change_sets_tick()

    assert stands(made).view.state is SetState.PUBLISHED
    assert Change.objects.count() == before + 1
    assert Revision.objects.count() == 1
    assert len(told("published")) == 1
    [change] = stands(made).view.changes
    assert Change.objects.get(public_id=change).author == "ada"


@pytest.mark.parametrize("point", ["change_set.read"])
def test_two_workers__one_overtakes_the_other__it_is_published_once(database: str, point: str) -> None:
    made = due(proposed())

    def overtake(name: str) -> None:
        if name == point:
            failpoints.arm()
            change_sets_tick()

    failpoints.arm(overtake)
    change_sets_tick()

    assert stands(made).view.state is SetState.PUBLISHED
    assert (Revision.objects.count(), len(told("published"))) == (1, 1)


def test_before_its_time__nothing_happens(database: str) -> None:
    made = proposed()
    change_set_schedule(public_id=made, not_before=timezone.now() + timedelta(hours=1), actor=ADA)

    change_sets_tick()

    assert stands(made).view.state is SetState.SCHEDULED
    assert Revision.objects.count() == 0


def test_frozen__waits_says_so_once_and_is_published_when_it_ends(database: str) -> None:
    made = due(proposed())
    now = timezone.now()
    policy(freezes=(Freeze("inventory", now - timedelta(hours=1), now + timedelta(hours=1)),))

    for _ in range(3):
        change_sets_tick()
    assert stands(made).view.state is SetState.SCHEDULED
    assert "inventory" in stands(made).view.waits_for
    assert len(told("waiting")) == 1
    policy(freezes=())
    change_sets_tick()

    assert stands(made).view.state is SetState.PUBLISHED
    assert stands(made).view.waits_for == ""


def test_freeze__begins_between_the_look_and_the_write__nothing_is_published(database: str) -> None:
    made = due(proposed())
    now = timezone.now()

    def meanwhile(name: str) -> None:
        if name == "change_set.read":
            failpoints.arm()
            policy(freezes=(Freeze("inventory", now - timedelta(hours=1), now + timedelta(hours=1)),))

    failpoints.arm(meanwhile)
    change_sets_tick()

    assert (stands(made).view.state, Revision.objects.count()) == (SetState.SCHEDULED, 0)


def test_frozen_until_it_expires__is_expired_and_told(database: str) -> None:
    made = due(proposed(expires=timedelta(minutes=10)))
    now = timezone.now()
    policy(freezes=(Freeze("inventory", now - timedelta(hours=1), now + timedelta(hours=1)),))
    change_sets_tick()
    ChangeSet.objects.update(expires=now - timedelta(milliseconds=1))

    for _ in range(2):
        change_sets_tick()
    policy(freezes=())
    change_sets_tick()

    assert stands(made).view.state is SetState.EXPIRED
    assert (len(told("expired")), Revision.objects.count()) == (1, 0)


def test_written_meanwhile__is_stopped_and_says_what_to_do(database: str) -> None:
    made = due(proposed())
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay", connect_timeout="9s")))], actor=BOB)

    change_sets_tick()

    view = stands(made).view
    assert view.state is SetState.STALE
    assert "written since" in view.waits_for
    assert told("stopped") == [view.waits_for]
    assert [(each.name, each.base, each.now, each.author) for each in stands(made).moved] == [("pay", 0, 1, "bob")]


def test_database_restored_since__is_stopped_for_it_may_have_been_published_in_what_was_lost(database: str) -> None:
    made = due(proposed())
    with transaction.atomic():
        lineage_renew(environment=environment_lock(key="default"), actor=ADA, reason="restored")

    change_sets_tick()

    assert (stands(made).view.state, Revision.objects.count()) == (SetState.APPROVED, 0)
    assert "was restored" in told("stopped")[0]
    due(made)
    change_sets_tick()
    assert stands(made).view.state is SetState.PUBLISHED


def test_on_hold__waits_until_it_is_released(database: str) -> None:
    made = due(proposed())
    policy(hold="a rollback is looked at")

    change_sets_tick()
    assert (stands(made).view.state, Revision.objects.count()) == (SetState.SCHEDULED, 0)
    assert "a rollback is looked at" in stands(made).view.waits_for
    policy(hold="")
    change_sets_tick()

    assert stands(made).view.state is SetState.PUBLISHED


def test_review_asked_for_since__is_stopped(database: str) -> None:
    made = due(proposed())
    policy(review=ReviewSettings(required=True, approvals=2))

    change_sets_tick()

    assert stands(made).view.state is SetState.DRAFT
    assert "one more person" in stands(made).view.waits_for


@pytest.mark.parametrize("way", ["role taken", "account turned off", "account deleted"])
def test_scheduler__may_not_any_more__nothing_is_published_and_it_is_told(database: str, way: str) -> None:
    user = User.objects.create_user("eve")
    RoleGrant.objects.create(user=user, role="editor", environment="default")
    eve = user_principal(user)
    assert eve is not None
    made = due(proposed(), by=eve)
    match way:
        case "role taken":
            RoleGrant.objects.all().delete()
        case "account turned off":
            User.objects.update(is_active=False)
        case _:
            user.delete()

    change_sets_tick()

    assert stands(made).view.state is SetState.APPROVED
    assert "eve, who scheduled it" in told("stopped")[0]
    assert Resource.objects.count() == 0


@pytest.mark.parametrize("names", [("pay*",), ("shop*",)], ids=["within", "outside"])
def test_scheduler__has_a_limit_by_then__it_is_published_only_within_it(database: str, names: tuple[str, ...]) -> None:
    eve = User.objects.create_user("eve", password="pw")
    whole = RoleGrant.objects.create(user=eve, role="editor", environment="default")
    scheduler = user_principal(eve)
    assert scheduler is not None
    public_id = due(proposed(by=scheduler), by=scheduler)
    whole.delete()
    RoleGrant.objects.create(user=eve, role="viewer", environment="default")
    RoleGrant.objects.create(user=eve, role="editor", environment="default", within=Limit(names=names).text)

    change_sets_tick()

    view = stands(public_id).view
    if names == ("pay*",):
        assert view.state is SetState.PUBLISHED
    else:
        assert view.state is SetState.APPROVED
        assert "eve has it for resources 'shop*' only" in view.waits_for
        assert not Resource.objects.filter(name="pay").exists()


def test_one_that_cannot_be_handled__holds_up_no_other(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = due(proposed("pay")), due(proposed("shop"))
    true = publishing._ready

    def ready(row: ChangeSet) -> object:
        if str(row.public_id) == first:
            raise RuntimeError("a flaw")
        return true(row)

    monkeypatch.setattr(publishing, "_ready", ready)
    change_sets_tick()

    assert stands(first).view.state is SetState.SCHEDULED
    assert stands(second).view.state is SetState.PUBLISHED

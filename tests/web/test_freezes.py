"""Freezes in the console: set and ended on their page; and what is refused asks, where somebody may, why it cannot
wait.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from controlplane.accounts.principal import SYSTEM, Role
from controlplane.catalog.freezes import Freeze, Weekday
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import environment_update
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet
from tests.web import test_loss_questions as losing
from tests.web.conftest import SignIn, page
from tests.web.test_loss_questions import Write, question

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "/e/default"
PATH = f"{HERE}/freezes"
CLUSTER = '{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "other", "connect_timeout": "1s"}'
NEW = {"action": "save", "text": CLUSTER, "message": "needed"}


def freezes() -> tuple[Freeze, ...]:
    return environment_get(key="default").policy.freezes


def test_home__an_environment_is_frozen__says_so_and_until_when(admin: Client) -> None:
    assert "frozen" not in page(admin, "/")

    freeze_now()

    [held] = freezes()
    assert held.ends is not None
    assert f'<a href="{PATH}">frozen</a> until <time datetime="{held.ends:%Y-%m-%dT%H:%M:%SZ}">' in page(admin, "/")


def freeze_now(reason: str = "the year's end", role: Role = Role.OPERATOR) -> None:
    now = datetime.now(UTC)
    held = Freeze(reason, now - timedelta(hours=1), now + timedelta(hours=1))
    before = environment_get(key="default").policy
    environment_update(
        key="default",
        policy=replace(before, freezes=(held,), review=ReviewSettings(break_glass_role=role)),
        actor=SYSTEM,
    )


def breaking(shown: str) -> dict[str, Any]:
    """What the question about a freeze sends, as a browser would."""
    parser = losing.Fields()
    parser.feed(shown)
    [asked] = [form for form in parser.forms if "break_glass" in form]
    del asked["csrfmiddlewaretoken"]
    return asked


def test_page__once_and_each_week__are_set_shown_and_taken_away(admin: Client) -> None:
    once = {"action": "once", "from": "2026-12-20T00:00", "until": "2027-01-04T08:00", "reason": "the year's end"}
    weekly = {"action": "weekly", "days": ["sunday", "friday"], "from": "15:00", "until": "24:00"}

    assert admin.post(PATH, once).status_code == 302
    assert admin.post(PATH, {**weekly, "zone": "Europe/Berlin", "reason": "nobody is there"}).status_code == 302
    shown = page(admin, PATH)

    first, second = freezes()
    assert (first.begins, first.ends) == (datetime(2026, 12, 20, tzinfo=UTC), datetime(2027, 1, 4, 8, tzinfo=UTC))
    assert second.weekly is not None
    assert (second.weekly.days, second.weekly.ends) == ((Weekday.FRIDAY, Weekday.SUNDAY), None)
    assert "2026-12-20 00:00 UTC to 2027-01-04 08:00 UTC" in strip_tags(shown)
    assert "each friday, sunday 15:00 to 24:00 Europe/Berlin" in shown

    parser = losing.Fields()
    parser.feed(shown)
    ends = [form for form in parser.forms if form.get("action") == ["end"]]
    assert admin.post(PATH, {"action": "end", "freeze": ends[0]["freeze"][0]}).status_code == 302
    assert freezes() == (second,)
    assert admin.post(PATH, {"action": "end", "freeze": ends[0]["freeze"][0]}).status_code == 409


def once_form(shown: str) -> dict[str, Any]:
    """The fields of the form of a freeze that holds once."""
    parser = losing.Fields()
    parser.feed(shown)
    [form] = [form for form in parser.forms if form.get("action") == ["once"]]
    return form


def test_page__opened_by_a_command__is_filled_in_from_now_on_and_enter_sets_nothing(admin: Client) -> None:
    before = datetime.now(UTC).replace(second=0, microsecond=0)

    asked = once_form(page(admin, f"{PATH}?for=2h&reason=deploy+%3Cnight%3E"))
    bare = once_form(page(admin, PATH))

    begins, ends = (datetime.fromisoformat(asked[name][0]).replace(tzinfo=UTC) for name in ("from", "until"))
    assert before <= begins <= datetime.now(UTC)
    assert ends - begins == timedelta(hours=2)
    assert asked["reason"] == ["deploy <night>"]
    assert (bool(bare["from"][0]), bare["until"], bare["reason"]) == (True, [""], [""])
    assert once_form(page(admin, f"{PATH}?for=soon"))["until"] == [""]
    for action in ("once", "weekly"):
        form = page(admin, PATH).partition(f'value="{action}"')[0].rpartition("<form")[2]
        assert '<button type="submit" disabled hidden>' in form
    assert freezes() == ()


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"action": "once", "from": "2027-01-04T08:00", "until": "2026-12-20T00:00", "reason": "x"}, "ends after it"),
        ({"action": "once", "from": "", "until": "soon", "reason": "kept words"}, "not weekly needs this time"),
        (
            {"action": "weekly", "from": "9", "until": "10:00", "zone": "UTC", "reason": "kept words"},
            "at least one day",
        ),
        ({"action": "melt"}, "nothing called"),
    ],
)
def test_page__mistake__says_what_keeps_what_was_typed_and_changes_nothing(
    form: dict[str, str], says: str, admin: Client
) -> None:
    answer = admin.post(PATH, form)

    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert ("kept words" in answer.content.decode()) is ("kept words" in form.values())
    assert freezes() == ()


def test_page__of_who_may_not__shows_freezes_and_no_form(sign_in: SignIn) -> None:
    freeze_now()
    viewer = sign_in(Role.OPERATOR, "default")

    shown = page(viewer, PATH)

    assert "the year&#x27;s end" in shown
    assert "Freeze each week" not in shown
    assert viewer.post(PATH, {"action": "end", "freeze": "any"}).status_code == 403


def test_every_page_of_a_frozen_environment__says_so(admin: Client) -> None:
    assert "is frozen until" not in page(admin, f"{HERE}/resources")
    freeze_now()

    assert "default is frozen until" in page(admin, f"{HERE}/resources")


@pytest.mark.parametrize(
    "made",
    [
        losing.rule_new,
        losing.rule_changed,
        losing.rule_switched,
        losing.rule_deleted,
        losing.rule_moved,
        losing.group_changed,
        losing.resource_deleted,
        losing.pruned,
        losing.set_published,
    ],
    ids=lambda each: each.__name__,
)
def test_write__frozen__asks_why_it_cannot_wait_and_then_what_it_takes(
    made: Callable[[Fleet], Write], admin: Client, fleet: Fleet
) -> None:
    write = made(fleet)
    freeze_now()
    before = Change.objects.count()

    asked = admin.post(write.path, write.form)

    assert asked.status_code == 409
    typed = {name: value if isinstance(value, list) else [str(value)] for name, value in write.form.items()}
    sent = breaking(asked.content.decode())
    # Forms of the pages of access also say what they would propose, if asked to.
    pressed = {"act": typed["action"]} if "/access" in write.path and "action" in typed else {}
    assert sent == {**typed, **pressed, "break_glass": [""]}
    for reason in (" ", "two\nlines", "x" * 301):
        assert admin.post(write.path, {**sent, "break_glass": reason}).status_code == 409
    assert Change.objects.count() == before
    losses = question(admin.post(write.path, {**sent, "break_glass": "the shop is down"}).content.decode())
    assert Change.objects.count() == before
    assert admin.post(write.path, {**losses, "accept_loss": "3"}).status_code == 302
    assert Change.objects.latest("pk").message.endswith("broke the freeze: the shop is down")


def test_editor__frozen__asks_beside_the_text_where_scripts_run_and_repeats_no_secret(admin: Client) -> None:
    freeze_now()
    form = {"action": "save", "text": CLUSTER, "revision": "0"}

    part = admin.post(f"{HERE}/resources/new", form, headers=losing.PART)
    whole = admin.post(f"{HERE}/resources/new", {**form, "text": losing.SECRET})

    assert (part.status_code, whole.status_code) == (409, 409)
    assert 'name="break_glass"' in part.content.decode()
    assert "hunter2" not in whole.content.decode()
    assert 'name="text"' in whole.content.decode()  # it is asked for again
    done = admin.post(f"{HERE}/resources/new", {**form, "break_glass": "the shop is down"}, headers=losing.PART)
    assert done.status_code == 201
    assert Resource.objects.get().name == "other"


def test_write__frozen_and_not_for_who_writes_to_break__says_until_when_and_who_may(sign_in: SignIn) -> None:
    freeze_now(role=Role.ADMIN)
    editor = sign_in(Role.EDITOR, "default")

    answer = editor.post(f"{HERE}/import", NEW)

    shown = answer.content.decode()
    assert answer.status_code == 409
    assert "break-glass" not in shown
    assert "frozen until" in shown
    assert "the role admin" in shown
    # Nor by a form of their own making.
    assert editor.post(f"{HERE}/import", {**NEW, "break_glass": "please"}).status_code == 403
    assert not Resource.objects.exists()

"""The pages of rollouts: who has it and why, what is said, what somebody may do, and what settings would mean."""

from dataclasses import dataclass
from html import unescape
from pathlib import Path
from re import sub

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import environment_get
from controlplane.console.pages import PART
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.services.signing import webhook_secret
from controlplane.rollouts.values import RolloutState
from tests.services.rollouts.clients import ENVOY, GO, Fleet, go_on, switch_on, write
from tests.support.manifests import cluster
from tests.web.conftest import SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

SETTINGS = "/e/default/rollouts/settings"
STEPS = {"mode": "steps", "steps": [{"clients": 1, "approve": True}, {"percent": 100}]}
# The form as it stands for an environment without rollouts.
FORM = {
    "mode": "off",
    "on_failure": "revert",
    "unexposed": "",
    "answer_within": "30s",
    "silent_percent": "10",
    "errors": "on",
    "immediate": ["endpoint", "runtime"],
    "action": "save",
}


@dataclass(frozen=True)
class World:
    """Two Envoys and a gRPC client in Go, and a rollout that waits for a person at its first step."""

    fleet: Fleet
    rollout: str
    change: str

    @property
    def path(self) -> str:
        return f"/rollouts/{self.rollout}"


@pytest.fixture
def sessions(environments: None, tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    for node_id, agent in (("envoy-1", ENVOY), ("envoy-2", ENVOY), ("go-1", GO)):
        fleet.join(node_id, "pay", "shop", agent=agent)
    write(cluster("pay"), cluster("shop"))
    go_on(fleet)
    return fleet


@pytest.fixture
def world(sessions: Fleet) -> World:
    switch_on(**STEPS)
    change = write(cluster("pay", connect_timeout="2s"))
    go_on(sessions)
    return World(sessions, str(Rollout.objects.get().public_id), change)


def text_of(html: str) -> str:
    """What a page says, on one line."""
    return " ".join(unescape(sub(r"<[^>]+>", " ", html)).split())


def test_page__of_an_open_rollout__says_who_has_it_why_what_they_said_and_what_it_waits_for(
    world: World, sign_in: SignIn
) -> None:
    browser = sign_in(None, "")

    said = text_of(page(browser, world.path))

    assert "Step 1 of 2" in said
    assert "Waits for a person" in said
    assert "1 client, then a person's word" in said
    assert "Have it 1 Ask for it 1 Took it 1 Refused 0 Silent 0 Do not have it 2" in said
    assert "took it" in said
    assert "with step 1" in said
    assert "connect_timeout: 2s" in said
    assert "by dana in change" in said
    stable = text_of(page(browser, f"{world.path}?side=stable&part=clients"))
    assert stable.count("envoy") + stable.count("go-1") >= 2
    assert "No client is so" in text_of(page(browser, f"{world.path}?state=refused"))


def test_page__while_a_webhook_is_asked_whether_to_begin__says_that_the_first_step_is_ahead(
    sessions: Fleet, sign_in: SignIn
) -> None:
    switch_on(**STEPS, gates={"webhooks": ["https://gate.example.org/judge"]})
    write(cluster("pay", connect_timeout="2s"))
    go_on(sessions)
    path = f"/rollouts/{Rollout.objects.get().public_id}"
    browser = sign_in(Role.OPERATOR, "default")

    said = text_of(page(browser, path))

    assert "Before step 1 of 2" in said
    assert "Begin step 1" in said
    assert "1 ahead" in said
    assert "Go to step" not in said
    browser.post(path, {"action": "advance", "reason": "the gate is down", "step": "1"})
    go_on(sessions)
    assert "Go to step 2" in text_of(page(browser, path))


@pytest.mark.parametrize("part", ["now", "clients", "chart"])
def test_part__of_an_open_rollout__is_what_refreshes(world: World, sign_in: SignIn, part: str) -> None:
    found = page(sign_in(None, ""), f"{world.path}?part={part}")

    assert "<html" not in found
    assert found.strip()


def test_ways__home_changes_and_the_change__lead_to_the_rollout(world: World, sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    link = f'href="{world.path}"'

    assert link in page(browser, "/?part=now")
    assert link in page(browser, "/e/default/rollouts")
    change = page(browser, f"/changes/{world.change}")
    assert link in change
    assert "On its way: the clients that its rollout asks have it" in text_of(change)
    assert "on its way" in text_of(page(browser, "/e/default/changes"))
    assert "r2 is on its way" in text_of(page(browser, "/e/default/resource?type=cluster&name=pay"))


def test_approve__with_a_reason__is_done_audited_and_the_fleet_has_it(world: World, sign_in: SignIn) -> None:
    browser = sign_in(None, "")

    assert '<input type="hidden" name="step" value="1">' in page(browser, world.path)
    unsaid = browser.post(world.path, {"action": "approve", "reason": " ", "step": 1})
    answer = browser.post(world.path, {"action": "approve", "reason": "looks good", "step": 1}, follow=True)
    go_on(world.fleet)

    assert unsaid.status_code == 422
    assert "Say why" in text_of(unsaid.content.decode())
    assert "The step is approved." in text_of(answer.content.decode())
    assert AuditEvent.objects.get(verb="rollout.approved").actor == "admin"
    assert Rollout.objects.get().state == RolloutState.DONE
    said = text_of(page(browser, world.path))
    assert "Every client may have it" in said
    assert "Decide" not in said
    assert "It came to everybody by rollout" in text_of(page(browser, f"/changes/{world.change}"))


@pytest.mark.parametrize(
    ("action", "state", "says"),
    [
        ("pause", RolloutState.PAUSED, "The rollout is paused"),
        ("abort", RolloutState.ABORTED, "The rollout is aborted"),
        ("reject", RolloutState.ABORTED, "The step is refused"),
    ],
)
def test_action__of_an_operator__is_done_and_said(
    world: World, sign_in: SignIn, action: str, state: RolloutState, says: str
) -> None:
    browser = sign_in(Role.OPERATOR, "default")

    answer = browser.post(world.path, {"action": action, "reason": "why not"}, follow=True)

    assert says in text_of(answer.content.decode())
    assert Rollout.objects.get().state == state


def test_action__that_is_not_possible_or_none__says_why(world: World, sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    browser.post(world.path, {"action": "pause", "reason": "r"})

    conflict = browser.post(world.path, {"action": "advance", "reason": "because", "step": 1})
    unknown = browser.post(world.path, {"action": "nonsense", "reason": "r"})

    assert conflict.status_code == 409
    assert "is paused and cannot go on" in text_of(conflict.content.decode())
    assert 'value="because"' in conflict.content.decode()
    assert unknown.status_code == 422


def test_advance__button_pressed_again_on_a_page_of_an_earlier_step__changes_nothing_and_says_so(
    world: World, sign_in: SignIn
) -> None:
    pressed = {"action": "advance", "reason": "because", "step": 1}
    browser = sign_in(None, "")
    for member in world.fleet.members.values():
        member.answers = False
    browser.post(world.path, pressed)
    go_on(world.fleet)

    again = browser.post(world.path, pressed, follow=True)

    assert "Nothing was changed." in text_of(again.content.decode())
    assert (Rollout.objects.get().step, Rollout.objects.get().state) == (1, RolloutState.RUNNING)


def test_page__of_somebody_who_only_looks__has_no_buttons_and_of_a_stranger_is_not_found(
    world: World, sign_in: SignIn
) -> None:
    viewer = sign_in(Role.VIEWER, "default")

    assert 'name="action"' not in page(viewer, world.path)
    assert viewer.post(world.path, {"action": "pause", "reason": "r"}).status_code == 403
    stranger = sign_in(Role.ADMIN, "prod").get(world.path)
    assert stranger.status_code == 404
    assert "pay" not in text_of(stranger.content.decode())


def test_page__of_a_rollout_that_took_something_back__quotes_who_refused_it_and_leads_to_the_incident(
    sessions: Fleet, sign_in: SignIn
) -> None:
    switch_on()
    sessions.members["go-1"].refuses = frozenset({"pay"})
    change = write(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    go_on(sessions)
    browser = sign_in(None, "")

    found = page(browser, f"/rollouts/{Rollout.objects.get().public_id}")
    said, of_change = text_of(found), text_of(page(browser, f"/changes/{change}"))

    assert "1 of 2 resources reached every client" in said
    assert "refused cluster pay : xDS response validation errors" in said
    assert "Open the incident" in said
    assert "/incidents/" in found
    assert "cluster pay was taken back before the fleet had it." in of_change
    assert "See where it stopped" in of_change
    assert "refused" in text_of(page(browser, f"/rollouts/{Rollout.objects.get().public_id}?part=clients"))


def test_settings__of_a_new_environment__say_what_happens_and_pilot_is_one_click(
    sessions: Fleet, sign_in: SignIn
) -> None:
    browser = sign_in(None, "")
    assert "reaches every client at once" in text_of(page(browser, "/e/default/rollouts"))
    assert "Each change goes to all 3 connected clients at once." in text_of(page(browser, SETTINGS))

    answer = browser.post(SETTINGS, {**FORM, "mode": "pilot"}, follow=True)

    assert "Saved. It applies to the next change." in text_of(answer.content.decode())
    assert environment_get(key="default").policy.rollout.mode.value == "pilot"
    assert "Of 3 clients it would be these 2" in text_of(page(browser, SETTINGS))


def test_settings__of_steps__are_kept_row_by_row_and_shown_again(sessions: Fleet, sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    rows = {
        "measure-0": "kinds",
        "amount-0": "1",
        "bake-0": "5m",
        "groups-0": "",
        "was-0": "",
        "measure-2": "percent",
        "amount-2": "12.5",
        "approve-2": "on",
        "groups-2": "",
        "bake-2": "",
    }

    answer = browser.post(SETTINGS, {**FORM, "mode": "steps", "four_eyes": "on", **rows})

    assert answer.status_code == 302
    assert environment_get(key="default").policy.rollout.as_json()["steps"] == [
        {"kinds": 1, "bake": "5m"},
        {"percent": 12.5, "approve": True},
    ]
    shown = page(browser, SETTINGS)
    assert 'value="12.5"' in shown
    assert 'value="5m"' in shown


def test_settings__kept_by_the_form__lose_no_gate_of_a_step_that_it_does_not_show(
    sessions: Fleet, sign_in: SignIn
) -> None:
    switch_on(mode="steps", steps=[{"kinds": 1, "gates": {"errors": False}}])
    row = {"measure-0": "kinds", "amount-0": "2", "was-0": "0"}

    sign_in(None, "").post(SETTINGS, {**FORM, "mode": "steps", **row})

    assert environment_get(key="default").policy.rollout.as_json()["steps"] == [
        {"kinds": 2, "gates": {"errors": False}}
    ]


def test_settings__that_cannot_be__are_refused_with_everything_that_is_wrong_and_the_form_as_it_was_sent(
    sessions: Fleet, sign_in: SignIn
) -> None:
    rows = {"measure-0": "percent", "amount-0": "120", "bake-0": "soon", "measure-1": "colour", "amount-1": "2"}

    answer = sign_in(None, "").post(SETTINGS, {**FORM, "mode": "steps", **rows})

    said = answer.content.decode()
    assert answer.status_code == 422
    for each in ("There is a problem", "/rollout/steps/0/percent", "/rollout/steps/0/bake", "/rollout/steps/1"):
        assert each in said
    assert 'value="120"' in said
    assert Environment.objects.get(key="default").rollout is None


def test_preview__while_somebody_types__says_who_would_be_asked_and_why_and_stores_nothing(
    sessions: Fleet, sign_in: SignIn
) -> None:
    browser = sign_in(None, "")

    found = browser.post(SETTINGS, {**FORM, "mode": "pilot"}, headers={PART: "1"}).content.decode()
    wrong = browser.post(SETTINGS, {**FORM, "mode": "steps"}, headers={PART: "1"}).content.decode()

    assert "3 clients are connected: 2 envoy 1.40 , 1 grpc-go 1.66" in text_of(found)
    assert "it is the grpc-go 1.66" in text_of(found)
    assert "It would be refused." in text_of(wrong)
    assert Environment.objects.get(key="default").rollout is None


def test_preview__without_scripts__is_the_page_again_and_stores_nothing(sessions: Fleet, sign_in: SignIn) -> None:
    answer = sign_in(None, "").post(SETTINGS, {**FORM, "mode": "pilot", "action": "preview"})

    assert "Of 3 clients it would be these 2" in text_of(answer.content.decode())
    assert Environment.objects.get(key="default").rollout is None


def test_settings__of_an_operator__can_be_read_and_not_changed(sessions: Fleet, sign_in: SignIn) -> None:
    browser = sign_in(Role.OPERATOR, "default")

    assert "needs the role admin" in text_of(page(browser, SETTINGS))
    assert browser.post(SETTINGS, {**FORM, "mode": "pilot"}).status_code == 403


def test_pages__of_hostile_clients_and_names__show_them_harmless(
    environments: None, tmp_path: Path, sign_in: SignIn
) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202egnp"
    fleet = Fleet(tmp_path)
    fleet.join(hostile, agent=(hostile, "1.40.0"))
    write(cluster(hostile))
    go_on(fleet)
    switch_on(**STEPS)
    write(cluster(hostile, connect_timeout="2s"))
    go_on(fleet)
    browser: Client = sign_in(None, "")

    for path in (f"/rollouts/{Rollout.objects.get().public_id}", SETTINGS, "/e/default/rollouts"):
        assert_harmless(page(browser, path))


def test_secret_of_webhooks__made_on_the_page__is_shown_once_to_who_may_set_rollouts(
    sessions: Fleet, sign_in: SignIn
) -> None:
    switch_on(gates={"webhooks": ["https://gate.example.org/judge"]})
    admin, operator = sign_in(Role.ADMIN, "default"), sign_in(Role.OPERATOR, "default")
    offered = "Make another secret"

    made = admin.post(SETTINGS, {"action": "secret"})
    again = page(admin, SETTINGS)

    secret = webhook_secret(Environment.objects.get(key="default").pk).decode()
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    assert secret in made.content.decode()
    assert offered in again
    assert secret not in again
    assert offered not in page(operator, SETTINGS)
    assert operator.post(SETTINGS, {"action": "secret"}).status_code == 403


def test_page__of_a_rollout_that_clients_refused__says_at_which_step_it_failed(
    sessions: Fleet, sign_in: SignIn
) -> None:
    switch_on()
    for member in sessions.members.values():
        member.refuses = frozenset({"pay"})
    write(cluster("pay", connect_timeout="2s"))
    go_on(sessions)

    said = text_of(page(sign_in(None, ""), f"/rollouts/{Rollout.objects.get().public_id}"))

    assert "Nothing of it reached the fleet" in said
    assert said.index("1 fail a pilot of each kind of client") < said.index("not reached every client")

"""The inbox, and the channels: who may see and make them, and that no secret is read back."""

import uuid
from dataclasses import replace
from ipaddress import ip_network

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.services import notify, samples
from tests.api.conftest import Caller, assert_problem, caller
from tests.support.webhook import receiver

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

SLACK = {"name": "slack", "kind": "slack", "target": "https://hooks.example/services/T0/hidden"}
HOOK = {"name": "ops", "kind": "webhook", "target": "https://hooks.example/in"}


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    return caller(*ADMIN_SCOPES)


def happen(environment: str) -> None:
    payload = {"type": "cluster", "name": f"of-{environment}", "revision": 2, "reason": "refused"}
    event_append(kind="quarantine.opened", environment=environment, subject="cluster/pay", payload=payload)


def test_inbox__shows_what_one_may_see_newest_first(api: Caller) -> None:
    happen("default")
    happen("prod")
    notify()

    everything = api.get("notifications?limit=1").json
    rest = api.get(everything["next"].partition("/api/v1/")[2]).json
    prod = caller(Scope(Role.VIEWER, "prod")).get("notifications").json

    titles = [page["results"][0]["title"] for page in (everything, rest)]
    assert titles == ["Cluster 'of-prod' is quarantined in 'prod'", "Cluster 'of-default' is quarantined in 'default'"]
    assert rest["next"] is None
    assert [each["environment"] for each in prod["results"]] == ["prod"]


def test_channel__made_read_and_deleted__secret_is_shown_once(api: Caller) -> None:
    made = api.post("channels", HOOK)
    slack = api.post("channels", SLACK)

    assert (made.status, slack.status) == (201, 201)
    assert made.json["secret"].startswith("whsec_")
    assert slack.json["secret"] == ""
    listed = api.get("channels")
    assert [each["name"] for each in listed.json["results"]] == ["ops", "slack"]
    assert b"whsec_" not in listed.content
    assert b"hidden" not in listed.content
    path = f"channels/{made.json['id']}"
    assert api.get(path).json["target"] == "https://hooks.example/…"
    assert api.get(f"{path}/deliveries").json == {"next": None, "results": []}
    assert api.post(f"{path}/resume").status == 200
    assert api("DELETE", path).status == 204
    assert_problem(api.get(path), 404)
    audit = api.get("audit").content
    assert b"channel.created" in audit
    assert b"hidden" not in audit


@pytest.fixture
def loopback(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_samples", samples._Samples())  # what other tests of this minute sent
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))


@pytest.mark.parametrize(("status", "ok"), [(200, True), (500, False)])
def test_channel_test__receiver_takes_it_or_not__says_so_and_leaves_nothing(
    api: Caller, loopback: None, status: int, ok: bool
) -> None:
    with receiver() as hook:
        hook.status = status
        channel = f"channels/{api.post('channels', HOOK | {'target': hook.url}).json['id']}"

        answer = api.post(f"{channel}/test")

    assert answer.status == 200
    assert answer.json["ok"] is ok
    assert len(hook.received) == 1
    assert b"A sample for channel 'ops'" in hook.received[0].body
    assert api.get(f"{channel}/deliveries").json["results"] == []


def test_channel_deliveries__of_an_event__say_what_was_answered(api: Caller, loopback: None) -> None:
    with receiver() as hook:
        channel = f"channels/{api.post('channels', HOOK | {'target': hook.url}).json['id']}"
        happen("default")

        notify()

    [delivery] = api.get(f"{channel}/deliveries").json["results"]
    assert delivery["title"] == "Cluster 'of-default' is quarantined in 'default'"
    assert (delivery["state"], delivery["attempts"], delivery["answer"]) == ("delivered", 1, "200 ok")
    assert (delivery["kind"], delivery["environment"]) == ("quarantine.opened", "default")
    last = api.get(channel).json["last_delivery"]
    assert (last["state"], last["answer"], last["at"]) == ("delivered", "200 ok", delivery["tried_at"])


def test_channel_deliveries__pages_and_filters__newest_first(api: Caller, loopback: None) -> None:
    with receiver() as hook:
        channel = f"channels/{api.post('channels', HOOK | {'target': hook.url}).json['id']}"
        happen("default")
        happen("prod")
        event_append(kind="build.failed", environment="default", subject="build", payload={})
        notify()

    first = api.get(f"{channel}/deliveries?limit=2").json
    rest = api.get(first["next"].partition("/api/v1/")[2]).json

    assert [each["kind"] for each in first["results"]] == ["build.failed", "quarantine.opened"]
    assert [each["environment"] for each in rest["results"]] == ["default"]
    assert rest["next"] is None
    assert len(api.get(f"{channel}/deliveries?kind=quarantine.opened").json["results"]) == 2
    assert len(api.get(f"{channel}/deliveries?state=delivered").json["results"]) == 3
    assert api.get(f"{channel}/deliveries?state=failed").json["results"] == []
    assert_problem(api.get(f"{channel}/deliveries?state=lost"), 422)
    assert_problem(api.get(f"{channel}/deliveries?kind=nothing"), 422)


def test_channel__changed__is_what_was_sent_and_keeps_the_rest(api: Caller) -> None:
    made = api.post("channels", {"name": "daily", "kind": "digest", "target": "a@b.example", "kinds": ["hold.set"]})
    path = f"channels/{made.json['id']}"

    named = api.patch(path, {"name": "each hour", "digest": {"every": "hour"}})
    moved = api.patch(path, {"target": "c@d.example", "environments": ["prod"], "kinds": []})

    assert made.json["digest"] == {"every": "day", "hour": 8, "zone": "UTC"}
    assert (named.status, moved.status) == (200, 200)
    changed = {"name": "each hour", "target": "c@d.example", "environments": ["prod"], "kinds": []}
    assert moved.json | {"secret": ""} == {
        **made.json,
        **changed,
        "digest": {"every": "hour", "hour": 0, "zone": "UTC"},
    }
    for body in ({"kind": "mail"}, {"digest": {"hour": 25}}, {"secret": "x"}, {"target": "nobody"}):
        assert_problem(api.patch(path, body), 422)
    assert api.get(path).json == moved.json


def test_channel__key_of_a_service__is_never_read_back_and_sent_nowhere_else(api: Caller) -> None:
    pager = {"name": "pager", "kind": "pagerduty", "secret": "given-key"}
    made = api.post("channels", pager)
    path = f"channels/{made.json['id']}"

    assert (made.json["target"], made.json["key_set"], made.json["secret"]) == (
        "https://events.pagerduty.com/…",
        True,
        "",
    )
    moved = api.patch(path, {"target": "https://elsewhere.example"})
    assert_problem(moved, 422)
    assert moved.json["errors"][0]["pointer"] == "/secret"
    assert api.patch(path, {"target": "https://elsewhere.example", "secret": "another-key"}).status == 200
    for answer in (made, moved, api.get(path), api.get("channels"), api.get("audit")):
        assert b"given-key" not in answer.content
        assert b"another-key" not in answer.content


def test_channel__wrong_in_several_parts__says_so_of_all(api: Caller) -> None:
    body = {"name": "x", "kind": "opsgenie", "target": "https://127.0.0.1", "kinds": ["nothing"], "digest": {}}

    answer = api.post("channels", body)

    assert_problem(answer, 422)
    assert [each["pointer"] for each in answer.json["errors"]] == ["/target", "/kinds", "/secret", "/digest"]


def test_channel__paused__keeps_what_happens_until_it_is_resumed(api: Caller, loopback: None) -> None:
    with receiver() as hook:
        path = f"channels/{api.post('channels', HOOK | {'target': hook.url}).json['id']}"
        paused = api.post(f"{path}/pause", {"reason": "it moves"})
        happen("default")
        notify()
        waiting = api.get(f"{path}/deliveries").json["results"]
        resumed = api.post(f"{path}/resume")
        notify()

    assert paused.json["paused_reason"].endswith(": it moves")
    assert paused.json["paused_at"] is not None
    assert [each["state"] for each in waiting] == ["pending"]
    assert resumed.json["paused_at"] is None
    assert len(hook.received) == 1
    assert_problem(api.post(f"{path}/pause", {}), 422)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"target": "https://127.0.0.1/"}, 422),
        ({"target": "https://[::ffff:10.0.0.1]/"}, 422),
        ({"target": "file:///etc/passwd"}, 422),
        ({"kind": "mail", "target": "nobody"}, 422),
        ({"kind": "pager"}, 422),
        ({"kinds": ["incident.imagined"]}, 422),
        ({"unknown": 1}, 422),
        ({"name": "taken"}, 409),
    ],
)
def test_channel__that_cannot_be__is_refused(api: Caller, change: dict[str, object], status: int) -> None:
    api.post("channels", HOOK | {"name": "taken"})

    assert_problem(api.post("channels", HOOK | change), status)


def test_channels__anybody_but_an_administrator_of_everything__403(api: Caller) -> None:
    path = f"channels/{api.post('channels', HOOK).json['id']}"
    paths = [("GET", "channels"), ("POST", "channels"), ("GET", path), ("DELETE", path), ("GET", f"{path}/deliveries")]
    paths += [("PATCH", path), *(("POST", f"{path}/{act}") for act in ("test", "pause", "resume"))]

    for scope in (Scope(Role.ADMIN, "prod"), *(Scope(role, None) for role in Role if role is not Role.ADMIN)):
        other = caller(scope)
        for verb, where in paths:
            assert_problem(other(verb, where, HOOK if verb in ("POST", "PATCH") else None), 403)


def test_channel__that_is_none__404(api: Caller) -> None:
    tails = [("GET", ""), ("DELETE", ""), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/resume")]
    for verb, tail in tails:
        assert_problem(api(verb, f"channels/{uuid.uuid4()}{tail}"), 404)
    assert_problem(api.patch(f"channels/{uuid.uuid4()}", {"name": "x"}), 404)
    assert_problem(api.post(f"channels/{uuid.uuid4()}/pause", {"reason": "x"}), 404)

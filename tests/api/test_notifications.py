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
from controlplane.notify.services import notify
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
    assert api.get(f"{path}/deliveries").json == {"results": []}
    assert api.post(f"{path}/resume").status == 200
    assert api("DELETE", path).status == 204
    assert_problem(api.get(path), 404)
    audit = api.get("audit").content
    assert b"channel.created" in audit
    assert b"hidden" not in audit


@pytest.fixture
def loopback(settings: Settings) -> None:
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
    assert api.get(f"{channel}/deliveries").json == {"results": []}


def test_channel_deliveries__of_an_event__say_what_was_answered(api: Caller, loopback: None) -> None:
    with receiver() as hook:
        channel = f"channels/{api.post('channels', HOOK | {'target': hook.url}).json['id']}"
        happen("default")

        notify()

    [delivery] = api.get(f"{channel}/deliveries").json["results"]
    assert delivery["title"] == "Cluster 'of-default' is quarantined in 'default'"
    assert (delivery["state"], delivery["attempts"], delivery["answer"]) == ("delivered", 1, "200 ok")


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
    paths += [("POST", f"{path}/test"), ("POST", f"{path}/resume")]

    for scope in (Scope(Role.ADMIN, "prod"), *(Scope(role, None) for role in Role if role is not Role.ADMIN)):
        other = caller(scope)
        for verb, where in paths:
            assert_problem(other(verb, where, HOOK if verb == "POST" else None), 403)


def test_channel__that_is_none__404(api: Caller) -> None:
    for verb, tail in (("GET", ""), ("DELETE", ""), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/resume")):
        assert_problem(api(verb, f"channels/{uuid.uuid4()}{tail}"), 404)

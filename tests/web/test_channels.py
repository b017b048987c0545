"""Channels in the console: made, tried, changed, paused and deleted, by who may; nothing secret and nothing hostile."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM, Role
from controlplane.config.values import Mail, MailSecurity, WebhookAllow
from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.catalogue import OF_CHANNELS
from controlplane.notify.channel_kinds import ChannelKind, Key
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel
from controlplane.notify.sealing import channel_secret
from controlplane.notify.services import channel_create, notify
from tests.support.webhook import Receiver, receiver
from tests.web.conftest import HOSTILE, assert_harmless, page, queries

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

KEY = "given-integration-key"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        yield running


def channel(
    target: str = "https://hooks.example/hidden-path", kind: ChannelKind = ChannelKind.WEBHOOK, name: str = "on call"
) -> str:
    """The path of the page of a new channel."""
    secret = KEY if kind.facts.key is Key.GIVEN else ""
    wanted = NewChannel(name, kind, target, environments=("default",), secret=secret)
    return f"/channels/{channel_create(wanted=wanted, actor=SYSTEM)[0].public_id}"


def happen(number: int = 1, reason: str = "refused") -> None:
    payload = {"type": "cluster", "name": f"c-{number:03}", "revision": 2, "reason": reason}
    event_append(kind="quarantine.opened", environment="default", subject=f"cluster/{number}", payload=payload)


def test_list__without_channels__leads_to_the_first(admin: Client) -> None:
    shown = page(admin, "/channels")

    assert "go nowhere else" in shown
    assert 'href="/channels/new"' in shown
    assert all(f"?kind={kind.value}" in page(admin, "/channels/new") for kind in ChannelKind)


@pytest.mark.parametrize("kind", ChannelKind)
def test_channel__of_each_kind__is_made_with_the_form_its_page_shows(admin: Client, kind: ChannelKind) -> None:
    facts, form = kind.facts, page(admin, f"/channels/new?kind={kind.value}")
    targets = {"url": "https://hooks.example/hidden-path", "api": "", "mail": "on-call@example.org"}
    fields = {"name": "on call", "target": targets[facts.addressed.value], "kinds": ["hold.set", "hold.released"]}
    if facts.key is Key.GIVEN:
        fields["secret"] = KEY
    if kind is ChannelKind.DIGEST:
        fields |= {"every": "day", "hour": "7", "zone": "Europe/Berlin"}

    assert set(re.findall(r' name="(\w+)"', form)) - {"csrfmiddlewaretoken", "viewport"} >= fields.keys()
    answer = admin.post(f"/channels/new?kind={kind.value}", fields)

    [made] = Channel.objects.all()
    assert (made.name, made.kind, made.kinds) == ("on call", kind.value, ["hold.set", "hold.released"])
    if facts.key is Key.MADE:
        assert answer.status_code == 201
        assert answer.headers["Cache-Control"] == "no-store"
        assert channel_secret(made).decode() in answer.content.decode()
        # It is shown at the path of the form: what it offers is about the channel all the same.
        assert answer.content.decode().count(f'action="/channels/{made.public_id}"') >= 4
    else:
        assert answer.status_code == 302
    shown = page(admin, f"/channels/{made.public_id}") + page(admin, "/channels")
    for secret in ("hidden-path", KEY, "whsec_"):
        assert secret not in shown
    host = {"url": "https://hooks.example/…", "api": f"{facts.api}/…", "mail": "on-call@example.org"}
    assert host[facts.addressed.value] in shown
    if kind is ChannelKind.DIGEST:
        assert "every day at 07:00 Europe/Berlin" in shown


def test_form__wrong_in_several_fields__says_all_of_it_and_keeps_what_was_typed(admin: Client) -> None:
    fields = {
        "name": "kept name",
        "target": "https://127.0.0.1/kept",
        "secret": "two words",
        "environments": ["prod"],
        "kinds": ["hold.set"],
    }

    answer = admin.post("/channels/new?kind=opsgenie", fields)

    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "The channel has 2 problems." in shown
    assert 'id="target-wrong"' in shown
    assert 'id="secret-wrong"' in shown
    assert "is not a public address" in shown
    for kept in (
        'value="kept name"',
        'value="https://127.0.0.1/kept"',
        'value="prod" checked',
        'value="hold.set" checked',
    ):
        assert kept in shown
    assert "two words" not in shown
    assert Channel.objects.count() == 0


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        ("?kind=mail", {"name": "x", "target": "nobody"}, "must be one mail address"),
        ("?kind=mail", {"target": "a@b.example"}, "needs a name"),
        ("?kind=digest", {"name": "x", "target": "a@b.example", "hour": "25", "zone": "Mars"}, "2 problems"),
        ("?kind=digest", {"name": "x", "target": "a@b.example", "hour": "eight"}, "whole number from 0 to 23"),
        ("?kind=slack", {"name": "taken", "target": "https://hooks.example"}, "There is a channel"),
        ("?kind=webhook", {"name": "x", "target": "https://hooks.example", "kinds": ["nothing"]}, "no kind of"),
        ("?kind=pager", {"name": "x"}, "Choose a kind"),
        ("", {"name": "x"}, "Choose a kind"),
    ],
)
def test_form__with_a_mistake__makes_nothing(admin: Client, path: str, fields: dict[str, object], says: str) -> None:
    channel(name="taken")

    answer = admin.post(f"/channels/new{path}", fields)

    assert answer.status_code in (409, 422)
    assert says in answer.content.decode()
    assert Channel.objects.count() == 1


@pytest.mark.parametrize("status", [200, 503])
def test_sample__says_what_the_receiver_answered(admin: Client, hook: Receiver, status: int) -> None:
    path = channel(hook.url)
    hook.status, hook.says = status, b"what it says"

    answer = admin.post(path, {"action": "test"}, follow=True)

    shown = answer.content.decode()
    assert f"{status} what it says" in shown
    assert ("and taken" in shown, "was not taken" in shown) == (status == 200, status == 503)
    assert len(hook.received) == 1


def test_sample__nobody_listens__says_so_in_words(admin: Client, hook: Receiver) -> None:
    answer = admin.post(channel("http://127.0.0.1:9/"), {"action": "test"})

    assert "nothing listens at this host and port" in answer.content.decode()


def test_channel__paused_resumed_and_deleted__is_so(admin: Client) -> None:
    path = channel()

    without = admin.post(path, {"action": "pause", "reason": " "})
    assert (without.status_code, Channel.objects.get().paused_at) == (422, None)
    assert admin.post(path, {"action": "pause", "reason": "it moves"}).status_code == 302
    assert "admin: it moves" in page(admin, path)
    assert "admin: it moves" in page(admin, "/channels")
    assert admin.post(path, {"action": "resume"}).status_code == 302
    assert Channel.objects.get().paused_at is None
    unknown = admin.post(path, {"action": "nothing"})
    assert "There is no such action" in unknown.content.decode()
    assert admin.post(path, {"action": "delete"}).headers["Location"] == "/channels"
    assert Channel.objects.count() == 0
    page(admin, path, 404)


def test_channel__changed__keeps_target_and_key_that_are_left_empty(admin: Client) -> None:
    path = channel("https://events.example", ChannelKind.PAGERDUTY)
    form = page(admin, f"{path}/edit")

    assert 'value="on call"' in form
    assert 'value="default" checked' in form
    assert KEY not in form
    assert admin.post(f"{path}/edit", {"name": "night", "target": "", "secret": ""}).status_code == 302
    row = Channel.objects.get()
    assert (row.name, row.target, row.environments) == ("night", "https://events.example", [])
    assert channel_secret(row) == KEY.encode()
    moved = admin.post(f"{path}/edit", {"name": "night", "target": "https://elsewhere.example"})
    assert moved.status_code == 422
    assert "integration key is missing" in moved.content.decode()


def test_channel__changed_where_an_environment_is_gone__keeps_it_to_choose(admin: Client) -> None:
    wanted = NewChannel("a", ChannelKind.MAIL, "a@b.example", environments=("gone",))
    made, _ = channel_create(wanted=wanted, actor=SYSTEM)

    assert 'value="gone" checked' in page(admin, f"/channels/{made.public_id}/edit")


def test_deliveries__of_a_channel__newest_first_with_answer_and_next_try(admin: Client, hook: Receiver) -> None:
    path = channel(hook.url)
    happen(1)
    notify()
    hook.status, hook.says = 503, b"no room"
    happen(2)
    notify()

    shown = page(admin, path)

    assert shown.index("c-002") < shown.index("c-001")
    assert "503 no room" in shown
    assert "tried again" in shown
    assert "failing" in shown
    assert "c-001" not in page(admin, f"{path}?state=pending")
    assert "c-002" not in page(admin, f"{path}?state=delivered")
    assert "c-002" in page(admin, f"{path}?kind=quarantine.opened")
    assert "No delivery fits" in page(admin, f"{path}?kind=build.failed")
    assert "failing" in page(admin, "/channels")
    admin.post(path, {"action": "pause", "reason": "it moves"})
    assert "until the channel is resumed" in page(admin, path)


def test_form__of_a_mail__without_a_mail_server__says_so(admin: Client, settings: Settings) -> None:
    assert "There is no mail server" in page(admin, "/channels/new?kind=digest")
    settings.PARLEY = replace(settings.PARLEY, mail=Mail("mail.example", 25, MailSecurity.NONE, "a@b.example"))
    assert "There is no mail server" not in page(admin, "/channels/new?kind=digest")
    assert "There is no mail server" not in page(admin, "/channels/new?kind=slack")


def test_deliveries__more_than_a_page__go_on_and_cost_the_same(admin: Client, hook: Receiver) -> None:
    path = channel(hook.url)
    happen(0)
    notify()
    few = (queries(admin, path), queries(admin, "/channels"))
    for number in range(1, 55):
        happen(number)
    notify()
    for number in range(5):
        channel(name=f"another {number}")

    first = page(admin, path)
    [following] = re.findall(r'rel="next" href="([^"]+)"', first)
    rest = page(admin, f"{path}{following}")

    assert ("c-054" in first, "c-001" in first, "c-000" in first) == (True, False, False)
    assert ("c-054" in rest, "c-000" in rest) == (False, True)
    assert (queries(admin, path), queries(admin, "/channels")) == few
    assert max(few) <= 12


def test_hostile__names_reasons_and_answers__act_nowhere(admin: Client, hook: Receiver) -> None:
    name = "<img src=x onerror=alert(1)> {{1234*5678}}"
    wanted = NewChannel(name, ChannelKind.WEBHOOK, hook.url, environments=(name, *(f"e{each}" for each in range(20))))
    made, _ = channel_create(wanted=wanted, actor=SYSTEM)
    Channel.objects.update(environments=[HOSTILE, *(f"e{each}" for each in range(20))])
    path = f"/channels/{made.public_id}"
    hook.status, hook.says = 500, HOSTILE.encode()
    event_append(kind="build.failed", environment="", subject=HOSTILE, payload={"reason": HOSTILE})
    notify()
    admin.post(path, {"action": "pause", "reason": "<img src=x> why"})

    for where in (path, f"{path}/edit", "/channels", "/messages"):
        assert_harmless(re.sub(r'value="[^"]*"', "", page(admin, where)))
        assert "<img src=x" not in page(admin, where)
        assert "7006652" not in page(admin, where)
    typed = admin.post("/channels/new?kind=mail", {"name": HOSTILE, "target": HOSTILE}).content.decode()
    assert "<img src=x" not in typed
    assert_harmless(re.sub(r'value="[^"]*"', "", admin.post(path, {"action": "test"}).content.decode()))
    for asked in ("?state=<img src=x>&kind=<img src=x>&before=<img src=x>", f"?before={'9' * 30}"):
        assert "<img src=x" not in page(admin, f"{path}{asked}")


def test_channels__of_whoever_does_not_administer_everything__are_not_there(
    person: Callable[..., Client],
) -> None:
    path = channel()
    somebody = [person(Role.ADMIN, "prod"), *(person(role, "") for role in Role if role is not Role.ADMIN)]

    for browser in somebody:
        for where in ("/channels", "/channels/new", "/channels/new?kind=mail", path, f"{path}/edit"):
            assert "hooks.example" not in page(browser, where, 403)
            assert browser.post(where, {"action": "delete", "name": "x"}).status_code in (403, 405)
        inbox = page(browser, "/messages")
        assert "on call" not in inbox
        assert 'href="/channels"' not in inbox
    assert Channel.objects.count() == 1


def test_navigation__of_an_administrator__has_channels(admin: Client) -> None:
    path = channel()

    for where in ("/channels", "/channels/new", path, f"{path}/edit"):
        assert re.search(r'<a href="/channels" aria-current="page">', page(admin, where))


def test_messages__of_every_kind__can_be_chosen(admin: Client) -> None:
    form = page(admin, "/channels/new?kind=webhook")

    assert set(re.findall(r'name="kinds" value="([\w.]+)"', form)) == {*OF_CHANNELS}


def test_button__of_a_message_in_slack__leads_to_the_page_of_what_it_tells(
    admin: Client, hook: Receiver, settings: Settings
) -> None:
    channel(hook.url, ChannelKind.SLACK)
    event_append(kind="hold.set", environment="default", subject="environment/default", payload={"reason": "why"})

    notify()

    [sent] = hook.received
    [button] = json.loads(sent.body)["blocks"][-1]["elements"]
    assert button["url"].startswith(f"{settings.PARLEY.public_url}/e/default")
    page(admin, button["url"].removeprefix(settings.PARLEY.public_url))

"""Channels of every kind made, tried and watched in the console, by a pointer, with keys alone and without scripts:
real browser, real Parley, and receivers over real HTTP and SMTP.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browser import CHROMIUM, MISSING
from tests.support.hands import PATIENCE_MS, Pointer
from tests.support.mailbox import Mailbox, mailbox
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiver
from tests.web.test_walks import browser, hand, place, session

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
]
expect.set_options(timeout=PATIENCE_MS)
__all__ = ["browser", "hand", "session"]  # the fixtures of test_walks.py: somebody who has signed in, by each hand

KEY = "0123456789abcdef0123456789abcdef"


@dataclass
class Receivers:
    """Everybody who is told, by what a form calls them."""

    post: Mailbox
    of: dict[str, Receiver] = field(default_factory=dict)


@pytest.fixture(scope="module")
def receivers() -> Iterator[Receivers]:
    with ExitStack() as stack:
        found = Receivers(stack.enter_context(mailbox()))
        for name in ("Webhook", "Slack", "PagerDuty", "Opsgenie"):
            found.of[name] = stack.enter_context(receiver())
        for name in ("PagerDuty", "Opsgenie"):
            found.of[name].status, found.of[name].says = 202, b'{"result": "Request will be processed"}'
        yield found


@pytest.fixture(scope="module")
def parley(receivers: Receivers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    extra = {
        "PARLEY_WEBHOOK_ALLOW": "127.0.0.0/8",
        "PARLEY_MAIL_URL": f"smtp://127.0.0.1:{receivers.post.port}?from=parley@example.org",
        "PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN": "1000",
    }
    with running_up(tmp_path_factory.mktemp("channels") / "home", extra) as running:
        yield running


@pytest.fixture(autouse=True)
def nobody_was_told(parley: Parley, receivers: Receivers) -> Iterator[None]:
    yield
    for each in parley.call("GET", "/channels").body["results"]:
        parley.call("DELETE", f"/channels/{each['id']}")
    receivers.post.received.clear()
    for receiver_ in receivers.of.values():
        receiver_.received.clear()


def make(hand: Pointer, kind: str, **fields: str) -> None:
    """Make a channel called as its kind, by the form; its page is shown. `fields`: what is written, by label."""
    main = hand.page.locator("main")
    place(hand, "Channels")
    hand.send(main.get_by_role("link", name="New channel"))
    hand.send(main.get_by_role("link", name=kind, exact=True))
    hand.write(main.get_by_label("Name"), f"{kind} of ops")
    for label, text in fields.items():
        hand.write(main.get_by_label(label), text)
    if kind == "Digest mail":
        hand.choose(main.get_by_label("One mail of each"), "hour")
    hand.press(main.get_by_role("button", name="Make the channel"))
    expect(main.get_by_role("heading", level=1, name=f"{kind} of ops")).to_be_visible()


def sample(hand: Pointer) -> None:
    """Send a sample from the page of a channel, and see that it was taken."""
    main = hand.page.locator("main")
    hand.send(main.get_by_role("button", name="Send a sample"))
    expect(main.get_by_text("A sample was sent, and taken:")).to_be_visible()


def hold(parley: Parley, reason: str | None) -> None:
    assert parley.call("PATCH", "/environments/default", {"hold": reason}).status == 200


def bodies(found: Receiver) -> list[Any]:
    return [json.loads(each.body) for each in found.received]


def test_channels__of_each_kind__are_made_tried_and_told_of_what_happens(
    hand: Pointer, parley: Parley, receivers: Receivers
) -> None:
    main, of, post = hand.page.locator("main"), receivers.of, receivers.post

    make(hand, "Webhook", URL=f"{of['Webhook'].url}hidden-path")
    secret = main.locator("pre").inner_text()
    assert secret.startswith("whsec_")
    sample(hand)
    make(hand, "Slack", URL=f"{of['Slack'].url}services/T0/hidden-path")
    sample(hand)
    for kind in ("PagerDuty", "Opsgenie"):
        make(hand, kind, **{f"URL of {kind}'s API": of[kind].url, "Integration key": KEY})
        sample(hand)
        expect(main.get_by_text("opened: 202")).to_be_visible()
    make(hand, "Mail", **{"Mail address": "ops@example.org"})
    sample(hand)
    make(hand, "Digest mail", **{"Mail address": "leads@example.org"})
    sample(hand)

    assert "A sample for channel 'Webhook of ops'" in bodies(of["Webhook"])[0]["title"]
    assert bodies(of["Slack"])[0]["blocks"][-1]["elements"][0]["url"] == hand.page.url.partition("/channels")[0]
    assert [each["event_action"] for each in bodies(of["PagerDuty"])] == ["trigger", "resolve"]
    assert of["Opsgenie"].received[1].path.endswith("/close?identifierType=alias")
    assert [each["To"] for each in post.received] == ["ops@example.org", "leads@example.org"]
    place(hand, "Channels")
    for name in ("Webhook", "Slack", "PagerDuty", "Opsgenie", "Mail", "Digest mail"):
        expect(main.get_by_role("link", name=f"{name} of ops", exact=True)).to_be_visible()
    shown = hand.page.content()
    for hidden in ("hidden-path", KEY, secret):
        assert hidden not in shown

    # Something happens, and is over.
    hold(parley, "the sale")
    hold(parley, None)
    hand.send(main.get_by_role("link", name="PagerDuty of ops"))
    hand.reload_until(main.get_by_role("row", name="'default' takes changes again").get_by_text("taken"))
    assert [each["event_action"] for each in bodies(of["PagerDuty"])[2:]] == ["trigger", "resolve"]
    eventually(lambda: len(post.received), lambda count: count == 4, within_s=30)
    eventually(lambda: len(of["Slack"].received), lambda count: count == 3, within_s=30)


def test_channel__whose_receiver_fails__says_so_is_paused_mended_and_deleted(
    hand: Pointer, parley: Parley, receivers: Receivers
) -> None:
    main, hook = hand.page.locator("main"), receivers.of["Webhook"]
    hook.status, hook.says = 503, b"no room"
    make(hand, "Webhook", URL=hook.url)

    hand.send(main.get_by_role("button", name="Send a sample"))
    expect(main.get_by_text("The sample was not taken. 503 no room")).to_be_visible()
    hold(parley, "the sale")
    hand.reload_until(main.get_by_role("row", name="'default' is on hold").get_by_text("503 no room"))
    expect(main.get_by_text("failing")).to_be_visible()

    hand.write(main.get_by_label("Reason"), "its receiver moves")
    hand.press(main.get_by_role("button", name="Pause"))
    expect(main.get_by_text("admin: its receiver moves")).to_be_visible()
    hold(parley, None)
    hand.reload_until(main.get_by_role("row", name="'default' takes changes again"))
    hook.status, hook.says = 200, b"ok"
    hand.send(main.get_by_role("button", name="Resume"))
    hand.reload_until(main.get_by_role("row", name="'default' takes changes again").get_by_text("taken"))

    hand.send(main.get_by_role("link", name="Change", exact=True))
    hand.write(main.get_by_label("Name"), "night")
    hand.press(main.get_by_role("checkbox", name="incident.opened"))
    hand.press(main.get_by_role("button", name="Keep the changes"))
    expect(main.get_by_role("heading", level=1, name="night")).to_be_visible()
    hand.press(main.locator("summary", has_text="Delete the channel"))
    hand.press(main.get_by_role("button", name="Delete night"))
    expect(main.get_by_text("The channel is gone")).to_be_visible()
    assert parley.call("GET", "/channels").body["results"] == []


def test_form__with_mistakes__leads_to_them_and_keeps_what_was_typed(hand: Pointer) -> None:
    main = hand.page.locator("main")
    place(hand, "Channels")
    hand.send(main.get_by_role("link", name="New channel"))
    hand.send(main.get_by_role("link", name="Digest mail", exact=True))
    hand.write(main.get_by_label("Name"), "kept")
    hand.write(main.get_by_label("Mail address"), "leads@example.org")
    hand.write(main.get_by_label("In the time zone"), "Europe/Nowhere")
    hand.write(main.get_by_label("Of a day"), "24")
    hand.press(main.get_by_role("button", name="Make the channel"))

    expect(main.get_by_text("The channel has 2 problems.")).to_be_visible()
    expect(main.get_by_label("Name")).to_have_value("kept")
    expect(main.get_by_label("In the time zone")).to_have_value("Europe/Nowhere")
    hand.write(main.get_by_label("In the time zone"), "Europe/Berlin")
    hand.write(main.get_by_label("Of a day"), "7")
    hand.press(main.get_by_role("button", name="Make the channel"))
    expect(main.get_by_text("digest mail, every day at 07:00 Europe/Berlin")).to_be_visible()

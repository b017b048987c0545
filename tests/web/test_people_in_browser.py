"""Somebody is invited by mail, comes in, and is signed out by who invited them: two people, each in a browser of their
own, by pointer, with keys alone and without scripts.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, expect

from controlplane.accounts.models import RoleGrant
from controlplane.database.aliases import READER
from controlplane.invitations.models import Invitation
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.mailbox import Mailbox
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import USERS, SignIn
from tests.web.test_invitation_mail import post

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
__all__ = ["post"]  # the fixture of test_invitation_mail.py: a mail server
PASSWORD = "correct horse battery"
NARROW = 390
HANDS = [pytest.param(Pointer, marks=pytest.mark.nightly), Keyboard, Plain]


@contextmanager
def sitting(browser: Browser, kind: type[Pointer], watch: Watch) -> Iterator[Pointer]:
    """Somebody in front of a browser of their own."""
    context: BrowserContext
    with browser.new_context(viewport={"width": NARROW, "height": 844}, java_script_enabled=kind.scripts) as context:
        context.set_default_timeout(PATIENCE_MS)
        watch.attend(context)
        yield kind(context.new_page())


def faults(hand: Pointer) -> list[str]:
    page = hand.page
    if not hand.scripts:
        return []
    return [*axe_faults(page), *focus_faults(page), *live_faults(page), *width_faults(page, NARROW)]


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_invited__comes_in_by_the_mail_and_is_signed_out_by_who_invited(
    kind: type[Pointer], sign_in: SignIn, post: Mailbox
) -> None:
    root = sign_in(None, "")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, kind, watch) as host, sitting(browser, kind, watch) as guest:
            host.page.context.add_cookies(
                [{"name": "sessionid", "value": root.cookies["sessionid"].value, "url": base}]
            )
            invite(host, base)
            assert faults(host) == []

            guest.page.goto(base + link_of(post))
            assert guest.page.url == f"{base}/invitation"
            accept(guest, watch)

            host.page.goto(f"{base}/users")
            main = host.page.locator("main")
            host.send(main.get_by_role("link", name="eve", exact=True))
            expect(main.get_by_role("heading", level=1)).to_have_text("eve")
            host.send(main.get_by_role("link", name="browsers and tokens"))
            expect(main.get_by_role("heading", level=1)).to_have_text("Browsers and tokens of eve")
            assert faults(host) == []
            host.write(main.get_by_label("Reason").last, "her last day")
            host.send(main.get_by_role("button", name="Sign them out everywhere"))
            expect(main.get_by_text("1 browser is signed out.")).to_be_visible()

            guest.page.reload()
            expect(guest.page.get_by_role("heading", level=1)).to_have_text("Sign in")
        assert watch.taken() == []
    assert Invitation.objects.get().accepted_by == "eve"


def invite(host: Pointer, base: str) -> None:
    """On the page of users: invite somebody by mail, to one role."""
    host.page.goto(f"{base}/users")
    main = host.page.locator("main")
    host.send(main.get_by_role("link", name="Invite somebody"))
    host.write(main.get_by_label("Mail address"), "eve@example.org")
    host.choose(main.get_by_label("Role 1"), "operator")
    host.choose(main.get_by_label("Environment 1"), "prod")
    host.write(main.get_by_label("Reason"), "on call from Monday")
    host.send(main.get_by_role("button", name="Make the invitation"))
    expect(main.get_by_role("heading", name="The link, which was mailed")).to_be_visible()
    expect(main.get_by_role("rowheader").get_by_text("eve@example.org")).to_be_visible()


def accept(guest: Pointer, watch: Watch) -> None:
    """Choose a name and a password, first one that many have; then sign in, and look at one's own browsers."""
    main = guest.page.locator("main")
    expect(main.get_by_text("invites you to operate Parley")).to_be_visible()
    assert faults(guest) == []
    for password in ("password1234", PASSWORD):
        guest.write(main.get_by_label("User name"), "eve")
        guest.write(main.get_by_label("Password", exact=True), password)
        guest.write(main.get_by_label("The password again"), password)
        guest.send(main.get_by_role("button", name="Make the account"))
        if password != PASSWORD:
            expect(main.get_by_text("too common").first).to_be_visible()
            assert faults(guest) == []
            watch.taken()  # that it is refused is an answer, which a browser reports as an error, too
    expect(main.get_by_text("sign in as eve")).to_be_visible()
    guest.write(main.get_by_label("User", exact=True), "eve")
    guest.write(main.get_by_label("Password", exact=True), PASSWORD)
    guest.send(main.get_by_role("button", name="Sign in"))
    guest.page.goto(guest.page.url.rstrip("/") + "/account/access")
    expect(main.get_by_text("this one")).to_be_visible()
    expect(main.get_by_text("on Linux").first).to_be_visible()
    assert faults(guest) == []


def link_of(post: Mailbox) -> str:
    """The path of the link in the one mail that came."""
    [mail] = post.received
    assert mail["To"] == "eve@example.org"
    body = mail.get_body()
    assert body is not None
    found = re.search(r"https?://\S+?(/invitation/\S+)", body.get_content())
    assert found is not None
    return found[1]


def test_pages_of_people__wide_and_narrow_light_and_dark__are_accessible(sign_in: SignIn) -> None:
    root: Client = sign_in(None, "")
    user = USERS.objects.create_user("eve")
    group = Group.objects.create(name="operators")
    group.user_set.add(user)
    RoleGrant.objects.create(group=group, role="operator", environment="prod")
    form = {
        "action": "make",
        "username": "bea",
        "role-1": "viewer",
        "environment-1": "prod",
        "days": "7",
        "reason": "x",
    }
    root.post("/users/invitations", form)
    paths = [
        "/users", f"/users/{user.pk}", f"/users/{user.pk}/access", "/users/groups", f"/users/groups/{group.pk}",
        "/users/invitations", "/account", "/account/access", "/invitation",
    ]  # fmt: skip
    found: dict[str, list[str]] = {}

    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        context.add_cookies([{"name": "sessionid", "value": root.cookies["sessionid"].value, "url": base}])
        page = context.new_page()
        for path in paths:
            for width in (1440, NARROW):
                for theme in ("light", "dark"):
                    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                    page.set_viewport_size({"width": width, "height": 900})
                    page.goto(base + path)
                    if faults := [*axe_faults(page), *width_faults(page, width)]:
                        found[f"{path} {width} {theme}"] = faults

    assert found == {}

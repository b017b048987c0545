"""Second factors in a real browser, with its own virtual security key: set up, asked for, without scripts, and asked
again in the middle of a form.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import pyotp
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from controlplane.config import values
from controlplane.config.values import SecondFactor
from controlplane.database.aliases import READER
from controlplane.factors.models import AuthenticatorApp, SecurityKey
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults, zoom_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import USERS

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
T = TypeVar("T")
PASSWORD = "correct horse battery"
SCRIPTED = {"pointer": Pointer, "keys": Keyboard}


@pytest.fixture
def site(settings: Settings, two_environments: None) -> Iterator[str]:
    """A Parley with a name: browsers use keys on localhost without TLS, and by no address."""
    USERS.objects.create_superuser("eve", password=PASSWORD)
    with serving_web() as base:
        named = base.replace("127.0.0.1", "localhost")
        settings.PARLEY = replace(settings.PARLEY, public_url=named)
        yield named


@pytest.fixture
def browser(site: str) -> Iterator[Browser]:
    """A browser that is begun after the database, and ended before."""
    with chromium() as found:
        yield found


@dataclass(slots=True)
class Person:
    """Eve in front of a browser; `watch` has what the browser complained about."""

    hand: Pointer
    site: str
    watch: Watch

    @property
    def page(self) -> Page:
        return self.hand.page

    def goto(self, path: str) -> None:
        self.page.goto(f"{self.site}{path}")

    def send(self, button: str) -> None:
        self.hand.send(self.page.locator("main").get_by_role("button", name=button, exact=True))

    def write(self, label: str, text: str) -> None:
        self.hand.write(self.page.locator("main").get_by_label(label, exact=True), text)

    def first_step(self, path: str = "/") -> None:
        self.goto(path)
        self.write("User", "eve")
        self.write("Password", PASSWORD)
        self.send("Sign in")

    def leave(self) -> None:
        self.hand.press(self.page.locator("details.person > summary"))
        self.hand.send(self.page.get_by_role("button", name="Sign out"))

    def set_up_app(self) -> tuple[str, list[str]]:
        """The secret of a new app, and the recovery codes."""
        self.goto("/account/second-factor")
        self.send("Set up an app")
        secret = self.page.get_by_label("The secret of the app").inner_text().replace(" ", "")
        self.write("Type the code that the app shows", code(secret))
        self.send("Set it up")
        return secret, self.page.get_by_label("Recovery codes, one on each line").inner_text().split()


def person(context: BrowserContext, kind: type[Pointer], site: str) -> Person:
    context.set_default_timeout(PATIENCE_MS)
    watch = Watch(site)
    watch.attend(context)
    return Person(kind(context.new_page()), site, watch)


def code(secret: str, steps_off: int = 0) -> str:
    return pyotp.TOTP(secret).generate_otp(int(timezone.now().timestamp()) // 30 + steps_off)


def plug_in(page: Page) -> None:
    """A security key in the browser that is touched whenever it is asked (WebDriver, virtual authenticators)."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "usb", "automaticPresenceSimulation": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def stored(ask: Callable[[], T]) -> T:
    """What the database says. Django asks it in no thread in which playwright runs."""

    def asked() -> T:
        try:
            return ask()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asked).result()


def proved_long_ago() -> None:
    """Everybody's proof of who they are is old."""

    def age() -> None:
        for row in Session.objects.all():
            store = SessionStore(row.session_key)
            store["proved_at"] = 0.0
            store.save()

    stored(age)


@pytest.mark.parametrize("hand", SCRIPTED)
def test_walk__app_and_key__are_set_up_and_each_signs_in(hand: str, browser: Browser, site: str) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        eve = person(context, SCRIPTED[hand], site)
        page, main = eve.page, eve.page.locator("main")
        plug_in(page)
        eve.first_step()
        page.wait_for_url(f"{site}/")
        secret, codes = eve.set_up_app()
        assert len(codes) == 10

        # A key, by its own dialogue with the browser.
        eve.goto("/account/second-factor")
        eve.send("Add a security key")
        eve.write("What you call it", "blue key")
        eve.send("Add it now")
        expect(main.get_by_text("Your security key is added.")).to_be_visible()
        assert stored(SecurityKey.objects.get).name == "blue key"

        # In by the key.
        eve.leave()
        eve.first_step("/tokens")
        expect(main.get_by_text("You are not signed in yet.")).to_be_visible()
        eve.send("Use a security key")
        page.wait_for_url(f"{site}/tokens")
        assert stored(SecurityKey.objects.get).last_used_at is not None

        # In by the next code of the app.
        eve.leave()
        eve.first_step("/users")
        eve.write("Code of your authenticator app", "000000")
        main.get_by_label("Code of your authenticator app").press("Enter")
        expect(main.get_by_role("alert")).to_contain_text("not the code that the app shows now")
        eve.write("Code of your authenticator app", code(secret, 1))
        with page.expect_navigation():
            main.get_by_label("Code of your authenticator app").press("Enter")
        page.wait_for_url(f"{site}/users")

        # Asked again in the middle of a form; the key answers, and what was typed is done.
        proved_long_ago()
        eve.write("User name", "ana")
        eve.write("Reason", "new in the team")
        eve.send("Add the user")
        expect(main.get_by_role("heading", name="Is it you?")).to_be_visible()
        eve.send("Use a security key")
        expect(main.get_by_role("heading", name="ana", exact=True)).to_be_visible()
        assert stored(USERS.objects.filter(username="ana").exists)

    assert eve.watch.taken() == []


def test_walk__without_scripts__app_and_recovery_code_work_and_keys_say_what_they_need(
    browser: Browser, site: str
) -> None:
    with browser.new_context(viewport={"width": 390, "height": 900}, java_script_enabled=False) as context:
        eve = person(context, Plain, site)
        page, main = eve.page, eve.page.locator("main")
        eve.first_step()
        page.wait_for_url(f"{site}/")
        _secret, codes = eve.set_up_app()
        eve.goto("/account/second-factor")
        eve.send("Add a security key")
        expect(main.get_by_text("Adding a key needs scripts, which this browser does not run here.")).to_be_visible()

        eve.leave()
        eve.first_step("/tokens")
        eve.hand.press(main.get_by_text("By a recovery code"))
        eve.write("One of your recovery codes", codes[0])
        with page.expect_navigation():
            main.get_by_label("One of your recovery codes").press("Enter")
        page.wait_for_url(f"{site}/tokens")

        proved_long_ago()
        eve.goto("/users")
        eve.write("User name", "ana")
        eve.write("Reason", "new in the team")
        eve.send("Add the user")
        eve.write("Your password", PASSWORD)
        eve.send("Go on")
        expect(main.get_by_role("heading", name="ana", exact=True)).to_be_visible()

    assert eve.watch.taken() == []


def test_key__under_another_address_than_the_public_url__says_where_to_go(browser: Browser, site: str) -> None:
    by_address = site.replace("localhost", "127.0.0.1")
    with browser.new_context() as context:
        eve = person(context, Pointer, by_address)
        plug_in(eve.page)
        eve.first_step()
        eve.goto("/account/second-factor")
        eve.send("Add a security key")

        expect(eve.page.get_by_text(f"Security keys are used under {site} alone: open Parley there.")).to_be_visible()
        expect(eve.page.get_by_role("button", name="Add it now")).to_be_hidden()


def test_pages__of_second_factors__everybody_can_use(browser: Browser, site: str, settings: Settings) -> None:
    with browser.new_context() as context:
        eve = person(context, Pointer, site)
        page, found = eve.page, {}
        plug_in(page)
        for name in pages(eve, settings):
            found[name] = faults_of(page)

    assert {name: faults for name, faults in found.items() if faults} == {}
    assert eve.watch.taken() == []


def pages(eve: Person, settings: Settings) -> Iterator[str]:
    """Each page that has to do with second factors in turn, shown in the browser; yields what it is."""
    settings.PARLEY = replace(settings.PARLEY, second_factor=SecondFactor.REQUIRED)
    eve.first_step()
    yield "set-up at the sign-in"
    settings.PARLEY = replace(settings.PARLEY, second_factor=SecondFactor.OPTIONAL)
    eve.page.context.clear_cookies()
    eve.first_step()
    eve.goto("/account/second-factor")
    yield "none"
    eve.send("Set up an app")
    yield "app, begun"
    secret = eve.page.get_by_label("The secret of the app").inner_text().replace(" ", "")
    eve.write("Type the code that the app shows", "000000")
    eve.send("Set it up")
    yield "app, wrong code"
    eve.write("Type the code that the app shows", code(secret))
    eve.send("Set it up")
    yield "recovery codes"
    eve.goto("/account/second-factor")
    eve.send("Add a security key")
    yield "key, begun"
    eve.write("What you call it", "blue key")
    eve.send("Add it now")
    yield "both"
    settings.PARLEY = replace(settings.PARLEY, mail=values.mail("smtp://127.0.0.1:9?from=parley@example.org"))
    eve.goto("/account/second-factor")
    yield "told"
    settings.PARLEY = replace(settings.PARLEY, mail=None)
    eve.goto("/account")
    yield "account"
    eve.goto("/users")
    yield "users"
    eve.hand.send(eve.page.get_by_role("link", name="eve", exact=True))
    yield "person"
    eve.goto(f"/users/{stored(somebody_else)}")
    yield "person, somebody else"
    yield from questions(eve)


def questions(eve: Person) -> Iterator[str]:
    """The same of pages that ask somebody who has second factors."""
    proved_long_ago()
    eve.goto("/users")
    eve.write("User name", "bob")
    eve.write("Reason", "new in the team")
    eve.send("Add the user")
    yield "asked again"
    eve.write("Your password", "wrong")
    eve.send("Go on")
    yield "asked again, wrong"
    eve.leave()
    eve.first_step()
    yield "second step"
    eve.write("Code of your authenticator app", "000000")
    with eve.page.expect_navigation():
        eve.page.get_by_label("Code of your authenticator app").press("Enter")
    yield "second step, wrong code"
    eve.page.get_by_text("By a recovery code").click()
    yield "second step, recovery code"


def somebody_else() -> int:
    """The id of somebody who has a second factor, too."""
    mallory = USERS.objects.create_user("mallory")
    AuthenticatorApp.objects.create(user=mallory, sealed=b"", last_step=0)
    return int(mallory.pk)


def faults_of(page: Page) -> list[str]:
    """Everything that is wrong with the page that is shown, wide and narrow, light and dark."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": 1440, "height": 900})
    found = [*axe_faults(page), *focus_faults(page), *live_faults(page), *zoom_faults(page), *width_faults(page, 390)]
    found += axe_faults(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    return [*found, *axe_faults(page, contrast_only=True)]

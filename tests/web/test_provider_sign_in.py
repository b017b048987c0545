"""Signing in by an identity provider in a real browser, from the page that was wanted to the way out."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, openid_provider
from tests.support.page_checks import axe_faults, focus_faults, live_faults, width_faults, zoom_faults
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
]
expect.set_options(timeout=PATIENCE_MS)
HANDS = {"pointer": Pointer, "keys": Keyboard, "plain": Plain}


@dataclass(slots=True)
class Site:
    """A running Parley and its provider."""

    parley: Parley
    provider: Provider

    @property
    def home(self) -> str:
        return f"http://127.0.0.1:{self.parley.web_port}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with openid_provider() as provider:
        variables = {
            "PARLEY_OIDC_ISSUER": provider.url,
            "PARLEY_OIDC_CLIENT_ID": CLIENT_ID,
            "PARLEY_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "PARLEY_OIDC_ROLES": "platform=admin, shop=viewer@default",
            "PARLEY_OIDC_NAME": "Staff ID",
            "PARLEY_OIDC_LOCAL_SIGN_IN": "break-glass",
            # As long as the walk waits for it; the product's own is 45 s.
            "PARLEY_LIMIT_OIDC_RECHECK_S": "1",
        }
        with running_up(tmp_path_factory.mktemp("provider") / "home", variables) as parley:
            provider.redirect_uris = [f"http://127.0.0.1:{parley.web_port}/login/oidc/callback"]
            yield Site(parley, provider)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(params=["pointer", "keys", "plain"])
def hand(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Pointer]:
    """Somebody whom nobody knows yet. At the end: no script failed, and nothing broke the security policy."""
    kind = HANDS[request.param]
    complaints: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=kind.scripts) as context:
        _listened(context, complaints)
        yield kind(context.new_page())
    # What the server refuses is an answer, which a browser reports as an error, too.
    assert [each for each in complaints if "the server responded with a status of" not in each] == []


def _listened(context: BrowserContext, complaints: list[str]) -> None:
    context.set_default_timeout(PATIENCE_MS)
    context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda error: complaints.append(str(error.error)))


def faults_of(page: Page) -> list[str]:
    """Everything that is wrong with the page that is shown, wide and narrow, light and dark."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": 1440, "height": 900})
    found = [*axe_faults(page), *focus_faults(page), *live_faults(page), *zoom_faults(page), *width_faults(page, 390)]
    found += axe_faults(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    return [*found, *axe_faults(page, contrast_only=True)]


def test_pages__of_signing_in_and_out_by_a_provider__everybody_can_use(browser: Browser, site: Site) -> None:
    site.provider.add("cleo", "cleo", "platform", "shop")
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page, found = context.new_page(), {}
        page.goto(f"{site.home}/login")
        found["sign-in"] = faults_of(page)
        page.locator("details.local-sign-in > summary").click()
        found["sign-in, opened"] = faults_of(page)
        page.goto(f"{site.home}/login/oidc/callback?state=x&code=y")
        found["problem"] = faults_of(page)
        eventually(lambda: _leads_to_provider(site), within_s=PATIENCE_MS / 1000)
        page.goto(f"{site.home}/login?next=/users")
        page.get_by_role("link", name="Sign in with Staff ID").click()
        page.get_by_role("button", name="Continue as cleo", exact=True).click()
        page.get_by_role("link", name="cleo", exact=True).click()
        found["person"] = faults_of(page)
        page.goto(f"{site.home}/account")
        found["account"] = faults_of(page)
        token = str(page.locator("input[name=csrfmiddlewaretoken]").first.get_attribute("value"))
        told = context.request.post(f"{site.home}/logout", form={"csrfmiddlewaretoken": token})
        # It leads on at once, and would not be there to be looked at.
        shown = told.text().replace('http-equiv="refresh"', 'name="refresh"')
        page.route("**/signed-out", lambda asked: asked.fulfill(body=shown, content_type="text/html"))
        page.goto(f"{site.home}/signed-out")
        expect(page.get_by_role("heading", name="Signed out")).to_be_visible()
        found["signed out"] = faults_of(page)

    assert {name: faults for name, faults in found.items() if faults} == {}


def _leads_to_provider(site: Site) -> bool:
    answer = httpx.get(f"{site.home}/login/oidc", follow_redirects=False)
    return bool(answer.headers.get("Location", "").startswith(site.provider.url))


def test_walk__to_the_provider_and_back__works_loses_a_group_and_leaves_by_both_doors(
    hand: Pointer, site: Site
) -> None:
    page, main = hand.page, hand.page.locator("main")
    name = f"ana-{type(hand).__name__}".lower()
    ana = site.provider.add(name, name, "platform")

    # What was wanted leads to the provider, and back to what was wanted.
    page.goto(f"{site.home}/users?text=ana")
    expect(main.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
    expect(main.get_by_label("Password")).to_be_hidden()
    hand.send(main.get_by_role("link", name="Sign in with Staff ID"))
    hand.send(page.get_by_role("button", name=f"Continue as {name}", exact=True))
    page.wait_for_url(f"{site.home}/users?text=ana")
    expect(main.get_by_role("link", name=name, exact=True)).to_be_visible()

    # Whose word it is that she is here, and who says what she may.
    hand.send(main.get_by_role("link", name=name, exact=True))
    expect(main.get_by_text("by the group platform at the identity provider")).to_be_visible()
    expect(main.get_by_text(site.provider.url)).to_be_visible()

    # A group that is taken away there is gone here.
    ana.groups = ["shop"]
    page.goto(f"{site.home}/account")
    hand.reload_until(main.get_by_text("by the group shop at the identity provider"))
    page.goto(f"{site.home}/users")
    expect(main.get_by_text("needs the role admin")).to_be_visible()

    # Out of both.
    hand.press(page.locator("details.person > summary"))
    hand.press(page.get_by_role("button", name="Sign out"))
    page.wait_for_url(f"{site.home}/login?ended=1")
    assert all(each.person is not ana for each in site.provider.refresh.values())
    page.goto(f"{site.home}/account")
    expect(main.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


def test_walk__provider_down__is_told_in_words_and_break_glass_gets_in(hand: Pointer, site: Site) -> None:
    page, main = hand.page, hand.page.locator("main")
    eventually(
        lambda: _leads_to_provider(site), within_s=PATIENCE_MS / 1000
    )  # after a failure nobody asks for a moment
    page.goto(f"{site.home}/login")
    site.provider.answers["/token"] = (503, b"")
    try:
        site.provider.add("bob", "bob", "platform")
        hand.send(main.get_by_role("link", name="Sign in with Staff ID"))
        hand.send(page.get_by_role("button", name="Continue as bob", exact=True))
        expect(main.get_by_role("alert")).to_contain_text("cannot be asked now. Try again in a minute.")

        hand.press(main.get_by_text("As Parley's own administrator"))
        hand.write(main.get_by_label("User", exact=True), "admin")
        password = (site.parley.home / "admin.password").read_text().strip()
        hand.write(main.get_by_label("Password"), password)
        hand.send(main.get_by_role("button", name="Sign in", exact=True))
        page.wait_for_url(f"{site.home}/")
        page.goto(f"{site.home}/users")
        expect(main.get_by_role("heading", name="Users", exact=True)).to_be_visible()
    finally:
        site.provider.answers.clear()

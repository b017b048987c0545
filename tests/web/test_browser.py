"""Pages in a real browser: what scripts add, what works without them, and that nothing breaks the security policy."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import CHROMIUM, MISSING, chromium, sign_in
from tests.support.manifests import cluster
from tests.support.stack import Parley, running_up

pytestmark = [pytest.mark.skipif(not CHROMIUM, reason=MISSING), pytest.mark.xdist_group("browser")]

PATIENCE_MS = 30_000  # a bound for a machine that is busy, not a time anything takes
expect.set_options(timeout=PATIENCE_MS)
SOUND = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: {}\nconnect_timeout: 1s\n'


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("browser") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def _page(context: BrowserContext, parley: Parley) -> Page:
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    sign_in(page, _base(parley), (parley.home / "admin.password").read_text().strip())
    return page


@pytest.fixture
def page(browser: Browser, parley: Parley) -> Iterator[Page]:
    """Somebody signed in. At the end: nothing was refused by the security policy, and nothing asked for elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    asked: set[str] = set()
    context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", lambda request: asked.add(request.url.split("/")[2]))
    yield _page(context, parley)
    context.close()
    # What the server refuses is an answer, which a browser reports as an error, too.
    assert [each for each in complaints if "the server responded with a status of 4" not in each] == []
    assert asked == {_base(parley).removeprefix("http://")}


@pytest.mark.nightly
def test_editor__two_mistakes__are_marked_mended_and_published(page: Page, parley: Parley) -> None:
    page.goto(f"{_base(parley)}/e/default/resources/new")
    text = page.get_by_role("textbox", name="Manifest, YAML or JSON")
    _write(page, SOUND.format("pay").replace("1s", "-1s") + "lb_polcy: RANDOM\n")
    verdict = page.locator("#verdict")
    expect(verdict.get_by_role("heading", name="2 problems")).to_be_visible()
    expect(page.locator(".cm-lint-marker-error")).to_have_count(2)

    verdict.get_by_role("link", name="line 4").click()
    expect(text).to_be_focused()
    _write(page, SOUND.format("pay"))
    expect(verdict.get_by_text("Sound; saving creates cluster")).to_be_visible()
    page.get_by_label("What changes, and why").fill("first of all")
    page.get_by_role("button", name="Save and publish").click()

    page.wait_for_url("**/changes/*")
    expect(page.get_by_role("heading", name="first of all")).to_be_visible()
    # It refreshes by itself until the fleet has settled; here nobody asks for it.
    expect(page.get_by_text("No connected client asked for what it changed.")).to_be_visible()


@pytest.mark.nightly
def test_editor__name_that_is_taken__the_text_goes_along_to_the_one_that_is_there(page: Page, parley: Parley) -> None:
    parley.apply(cluster("taken"))
    page.goto(f"{_base(parley)}/e/default/resources/new")

    _write(page, SOUND.format("taken").replace("1s", "7s"))
    page.get_by_role("button", name="Edit that one with this text").click()
    expect(page.get_by_role("heading", name="Edit taken")).to_be_visible()
    expect(page.locator("#verdict").get_by_role("heading", name="saving updates cluster taken")).to_be_visible()
    page.get_by_role("button", name="Save and publish").click()
    page.get_by_role("link", name="Take back").click()
    page.get_by_label("Reason").fill("too patient")
    page.get_by_role("button", name="Take back").click()

    expect(page.get_by_role("heading", name="too patient")).to_be_visible()
    manifest = parley.call("GET", "/environments/default/resources/cluster/taken").body
    assert manifest["connect_timeout"] == cluster("taken")["connect_timeout"]


def test_keys__search_help_and_escape__do_what_the_list_says(page: Page, parley: Parley) -> None:
    page.goto(f"{_base(parley)}/e/default/resources")

    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    # A click on what is below the box may come to what the box suggests by now.
    page.locator("#search").blur()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_setup_guide__nothing_is_new__its_live_region_says_nothing_again(page: Page, parley: Parley) -> None:
    page.clock.install()
    page.goto(f"{_base(parley)}/e/default/setup")
    spoken = "() => { spoken = 0; new MutationObserver((all) => { spoken += all.length }).observe(%s, {%s}); }"
    region, all_of_it = "document.querySelector('[aria-live=polite]')", "childList: true, subtree: true"

    for round_ in range(4):
        with page.expect_response(lambda answer: "part=ticks" in answer.url):
            page.clock.run_for(3_000)
        if round_ == 1:
            # By now the page shows what the first answer brought.
            page.evaluate(spoken % (region, all_of_it))

    # The last answer came after the one before it was dealt with.
    assert page.evaluate("spoken") == 0


def test_editor__without_scripts__checks_and_saves(browser: Browser, parley: Parley) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = _page(context, parley)
        page.goto(f"{_base(parley)}/e/default/resources/new")
        page.get_by_label("Manifest").fill(SOUND.format("plain") + "lb_polcy: RANDOM\n")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("heading", name="There is a problem")).to_be_visible()
        expect(page.get_by_label("Manifest")).to_have_value(SOUND.format("plain") + "lb_polcy: RANDOM\n")
        page.get_by_label("Manifest").fill(SOUND.format("plain"))
        page.get_by_role("button", name="Save and publish").click()

        page.wait_for_url("**/changes/*")
        expect(page.get_by_role("link", name="plain", exact=True)).to_be_visible()


def test_theme__chosen__stays_without_scripts(browser: Browser, parley: Parley) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = _page(context, parley)
        page.get_by_text("theme and help").locator("..").click()
        page.get_by_role("button", name="dark").click()

        expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def _write(page: Page, text: str) -> None:
    """Replace the text of the editor as a keyboard would."""
    page.get_by_role("textbox", name="Manifest, YAML or JSON").focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def _base(parley: Parley) -> str:
    return f"http://127.0.0.1:{parley.web_port}"

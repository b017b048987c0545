"""Two people walk the whole way of a change set in a real browser: by pointer, with keys alone, and without scripts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, expect

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Resource
from controlplane.database.aliases import READER
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import SignIn
from tests.web.proposals import EDIT, review, text

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
NARROW = 390
HANDS = [pytest.param(Pointer, marks=pytest.mark.nightly), Keyboard, Plain]


@contextmanager
def sitting(browser: Browser, base: str, who: Client, kind: type[Pointer], watch: Watch) -> Iterator[Pointer]:
    """Somebody in front of a browser of their own."""
    context: BrowserContext
    with browser.new_context(viewport={"width": NARROW, "height": 844}, java_script_enabled=kind.scripts) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": "sessionid", "value": who.cookies["sessionid"].value, "url": base}])
        watch.attend(context)
        yield kind(context.new_page())


def faults(hand: Pointer) -> list[str]:
    page = hand.page
    if not hand.scripts:
        return []
    return [*axe_faults(page), *focus_faults(page), *live_faults(page), *width_faults(page, NARROW)]


def propose(author: Pointer, watch: Watch) -> None:
    """In the editor: saved, it is refused; what was typed is there, and is proposed."""
    main = author.page.locator("main")
    author.compose(text())
    author.write(main.get_by_label("What changes, and why"), "for the sale")
    author.press(main.get_by_role("button", name="Save and publish"))
    expect(main.get_by_text("takes reviewed change sets only").last).to_be_visible()
    watch.taken()  # that it is refused is an answer, which a browser reports as an error, too
    author.write(main.get_by_label("Title of a new one"), "More patience with pay")
    author.send(main.get_by_role("button", name="Propose as change set"))
    expect(main.get_by_role("heading", level=1)).to_have_text("More patience with pay")
    expect(main.get_by_text("connect_timeout: 7s")).to_be_visible()


def foresee(author: Pointer) -> None:
    """On its page: what publishing it would do comes by itself or, without scripts, by a link."""
    main = author.page.locator("main")
    if not author.scripts:
        author.send(main.get_by_role("link", name="show it with the page"))
    expect(main.get_by_text("connected clients ask for something of it")).to_be_visible()


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_two_people__propose_comment_approve_and_publish(kind: type[Pointer], sign_in: SignIn, written: str) -> None:
    review()
    proposer, reviewer = sign_in(Role.EDITOR, "default"), sign_in(Role.OPERATOR, "default")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with (
            sitting(browser, base, proposer, kind, watch) as author,
            sitting(browser, base, reviewer, kind, watch) as other,
        ):
            main = author.page.locator("main")
            author.page.goto(base + EDIT)
            propose(author, watch)
            foresee(author)
            assert faults(author) == []
            author.send(main.get_by_role("button", name="Submit for review"))
            expect(main.locator(".page-head").first.get_by_text("in review")).to_be_visible()

            # The other finds it from home, and says what they think of a line.
            other.page.goto(base)
            seen = other.page.locator("main")
            other.send(seen.get_by_role("link", name="1 change set waits for review"))
            other.send(seen.get_by_role("link", name="More patience with pay"))
            other.press(seen.locator("summary", has_text="Comment on it"))
            other.write(seen.get_by_label("Line of the new manifest"), "3")
            other.write(seen.locator("details[open]").get_by_label("Your comment"), "why not five?")
            other.send(seen.locator("details[open]").get_by_role("button", name="Comment"))
            expect(seen.get_by_text("why not five?").first).to_be_visible()
            assert faults(other) == []

            # It is mended, submitted again and approved; to turn it down asks why first.
            author.page.reload()
            author.send(main.get_by_role("link", name="Edit cluster pay"))
            author.compose(text(timeout="5s"))
            author.send(main.get_by_role("button", name="Save into the change set"))
            expect(main.locator(".page-head").first.get_by_text("draft")).to_be_visible()
            author.send(main.get_by_role("button", name="Submit for review"))
            expect(main.locator(".page-head").first.get_by_text("in review")).to_be_visible()
            other.page.reload()
            seen.locator("#reason").press_sequentially("in seconds?")
            seen.locator("#reason").press("Enter")  # which decides nothing: a reason is for any of the buttons
            expect(seen.locator("#reason")).to_have_value("in seconds?")
            other.page.reload()
            expect(seen.locator(".page-head").first.get_by_text("in review")).to_be_visible()
            other.send(seen.get_by_role("button", name="Turn down"))
            expect(seen.get_by_role("heading", name="There is a problem")).to_be_visible()
            watch.taken()
            other.send(seen.get_by_role("button", name="Approve"))
            expect(seen.get_by_text("It is approved: publish or schedule it.")).to_be_visible()

            # Publishing leads to the change, which leads back.
            author.page.reload()
            author.send(main.get_by_role("button", name="Publish now"))
            expect(main.get_by_role("heading", level=1)).to_have_text("for the sale")
            author.send(main.get_by_role("link", name="More patience with pay"))
            expect(main.get_by_text("Published by")).to_be_visible()
            assert faults(author) == []
            assert watch.taken() == []
    assert Change.objects.latest("pk").message == "for the sale"
    assert Resource.objects.get(name="pay").counter == 3

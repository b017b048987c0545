"""A rule and a group are proposed, looked at and edited in their change set, and submitted, in a real browser: by
pointer, with keys alone, and without scripts.
"""

import pytest
from playwright.sync_api import expect

from controlplane.access.models import AccessRule
from controlplane.accounts.principal import Role
from controlplane.changesets.selectors import change_set_get
from controlplane.database.aliases import READER
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Pointer
from tests.support.page_checks import Watch
from tests.support.web_thread import serving_web
from tests.web.conftest import SignIn
from tests.web.proposals import HERE, newest, review
from tests.web.test_change_sets_in_browser import HANDS, faults, sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_rule_and_group__proposed_edited_in_the_set_and_submitted(kind: type[Pointer], sign_in: SignIn) -> None:
    review()
    keeper = sign_in(Role.ACCESS_EDITOR, "default")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, keeper, kind, watch) as hand:
            page = hand.page
            main = page.locator("main")
            page.goto(f"{base}{HERE}/access/rule?effect=deny&pattern=pay*")
            hand.send(main.get_by_role("button", name="Propose…"))
            expect(main.get_by_role("heading", level=1)).to_have_text("Propose it as a change set")
            assert faults(hand) == []
            hand.write(main.get_by_label("Title of a new one"), "Nobody reads pay")
            hand.send(main.get_by_role("button", name="Propose as change set"))
            expect(main.get_by_role("heading", level=1)).to_have_text("Nobody reads pay")
            expect(main.get_by_text("named pay*, and are told so. It goes behind all other rules.")).to_be_visible()
            assert faults(hand) == []
            hand.send(main.get_by_role("link", name="Edit rule new-1"))
            hand.write(main.get_by_label("With deny: your words for clients"), "Ask #payments.")
            assert faults(hand) == []
            hand.send(main.get_by_role("button", name="Save into the change set"))
            expect(main.get_by_text("Ask #payments.")).to_be_visible()
            hand.send(main.get_by_role("button", name="Submit for review"))
            expect(main.locator(".page-head").first.get_by_text("in review")).to_be_visible()
            assert watch.taken() == []

    [wish] = change_set_get(public_id=str(newest().public_id)).wishes
    assert wish.after is not None
    assert wish.after["message"] == "Ask #payments."
    assert not AccessRule.objects.exists()

"""An operator assigns and mutes an incident and says what they found out, in a real browser: by pointer, with keys
alone, and without scripts.
"""

import pytest
from django.test import Client
from playwright.sync_api import expect

from controlplane.database.aliases import READER
from controlplane.discussion.models import Comment
from controlplane.incidents.models import Incident
from tests.services.incidents.fleet import Fleet
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.page_checks import Watch, axe_faults, focus_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import USERS
from tests.web.test_change_sets_in_browser import faults, sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
HANDS = [pytest.param(Pointer, marks=pytest.mark.nightly), Keyboard, Plain]
LONG = "The certificate of the bank is on another host since PAY-12. " * 5


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_incident__assigned_muted_and_commented_on(kind: type[Pointer], admin: Client, fleet: Fleet) -> None:
    USERS.objects.create_user("mia", is_superuser=True)
    admin.post("/ticket-links", {"form": "PAY-{number}", "url": "https://jira.example/browse/PAY-{number}"})
    incident = Incident.objects.get()
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, kind, watch) as hand:
            main = hand.page.locator("main")
            hand.page.goto(f"{base}/incidents/{incident.public_id}")
            hand.press(main.locator("summary", has_text="Assign it"))
            hand.write(main.get_by_label("A person, by their login"), "mia")
            hand.send(main.get_by_role("button", name="Assign to this person"))
            expect(main.get_by_text("is to look after it.")).to_be_visible()
            hand.press(main.locator("summary", has_text="Mute it for a time"))
            hand.choose(main.get_by_label("For how long"), "8h")
            hand.write(main.locator("#mute-reason"), "mia knows: PAY-12")
            hand.send(main.get_by_role("button", name="Mute", exact=True))
            expect(main.get_by_text("Muted until")).to_be_visible()
            hand.write(main.get_by_label("Your comment"), LONG)
            hand.send(main.get_by_role("button", name="Comment", exact=True))
            expect(main.locator(".comment-text")).to_contain_text("of the bank")
            expect(main.locator(".comment-text a").first).to_have_attribute(
                "href", "https://jira.example/browse/PAY-12"
            )
            assert faults(hand) == []
            assert watch.taken() == []
    incident.refresh_from_db()
    assert (incident.assignee, incident.muted_reason) == ("mia", "mia knows: PAY-12")
    assert Comment.objects.get().text == LONG.strip()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages__with_what_people_agreed_upon__have_no_fault_at_any_width(
    admin: Client, fleet: Fleet, theme: str
) -> None:
    USERS.objects.create_user("mia", is_superuser=True)
    admin.post("/ticket-links", {"form": "PAY-{number}", "url": "https://jira.example/browse/PAY-{number}"})
    incident = Incident.objects.get()
    path = f"/incidents/{incident.public_id}"
    admin.post(path, {"action": "assign", "to": "person", "person": "mia"})
    admin.post(path, {"action": "mute", "for": "8h", "reason": "mia knows: r3 comes with PAY-12"})
    for text in ("It fails since the node was moved: PAY-12.", "@mia can you look?\n\nThe file is not there."):
        admin.post("/comments", {"about": "incident", "key": str(incident.public_id), "text": text})
    say = {
        "about": "resource",
        "key": "cluster/pay",
        "environment": "default",
        "text": LONG + "https://e.example/" + "x" * 200,
    }
    admin.post("/comments", say)
    comment = f"/comments/{Comment.objects.latest('pk').public_id}"
    resource = "/e/default/resource?type=cluster&name=pay&tab=comments"
    found: list[str] = []
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with browser.new_context(color_scheme=theme) as context:  # type: ignore[arg-type]  # one of its words
            context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
            watch.attend(context)
            page = context.new_page()
            for shown in (path, resource, comment, "/ticket-links", "/messages?for=me", "/e/default/incidents"):
                page.goto(base + shown)
                page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
                for width in (1440, 390):
                    found += [f"{shown} at {width}: {each}" for each in width_faults(page, width)]
                    found += [f"{shown} at {width}: {each}" for each in (*axe_faults(page), *focus_faults(page))]
        assert found == []
        assert watch.taken() == []

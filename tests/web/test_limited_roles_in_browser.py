"""An administrator limits a role to some resources, and somebody of that team works with it, in a real browser."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from controlplane.accounts.models import RoleGrant
from controlplane.catalog.models import Resource
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.page_checks import Watch
from tests.support.web_thread import serving_web
from tests.web.conftest import USERS, SignIn
from tests.web.proposals import HERE, NEW, PAY, text
from tests.web.test_change_sets_in_browser import faults, sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
HANDS = [Pointer, pytest.param(Keyboard, marks=pytest.mark.nightly), Plain]
WITHIN = Limit(types=("cluster",), names=("pay*",))


def give(admin: Pointer, base: str, user_id: int) -> None:
    """The role editor, limited; Enter in a field of the limit gives nothing yet."""
    main = admin.page.locator("main")
    admin.page.goto(f"{base}/users/{user_id}")
    form = main.locator("form", has=admin.page.get_by_role("button", name="Give the role"))
    admin.choose(form.get_by_label("Role", exact=True), "editor: writes resources")
    admin.write(form.get_by_label("Reason"), "team pay")
    admin.press(form.locator("summary", has_text="Only for some resources"))
    assert faults(admin) == []
    admin.write(form.get_by_label("Of owner"), "x")
    form.get_by_label("Of owner").press("Enter")
    expect(form.get_by_label("Of owner")).to_have_value("x")
    admin.write(form.get_by_label("Of owner"), "")
    admin.press(form.get_by_label("cluster", exact=True))
    admin.write(form.get_by_label("With names"), "pay*")
    admin.send(form.get_by_role("button", name="Give the role"))
    expect(main.get_by_text("only cluster 'pay*'")).to_be_visible()
    assert faults(admin) == []


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_team__with_a_limited_role__writes_what_is_theirs_and_nothing_else(
    kind: type[Pointer], sign_in: SignIn, written: str
) -> None:
    pia = USERS.objects.create_user("pia")
    RoleGrant.objects.create(user=pia, environment="default", role="viewer")
    root, signed_in = sign_in(None, ""), Client()
    signed_in.force_login(pia)
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with (
            sitting(browser, base, root, kind, watch) as admin,
            sitting(browser, base, signed_in, kind, watch) as team,
        ):
            give(admin, base, pia.pk)

            # What is theirs they edit; what is not they only see.
            main = team.page.locator("main")
            team.page.goto(f"{base}{HERE}/resource?type=route&name=edge")
            expect(main.get_by_role("link", name="Graph").first).to_be_visible()
            expect(main.get_by_role("link", name="Edit")).to_have_count(0)
            assert faults(team) == []
            team.page.goto(base + PAY)
            team.send(main.get_by_role("link", name="Edit").first)
            team.compose(text(timeout="9s"))
            team.send(main.get_by_role("button", name="Save and publish"))
            expect(main.get_by_text("cluster pay").first).to_be_visible()

            # What they may not write is refused with why, and what they typed stays.
            team.page.goto(base + NEW)
            team.compose(text("shop"))
            team.press(main.get_by_role("button", name="Save and publish"))
            expect(main.get_by_text("pia may not write the cluster 'shop'").first).to_be_visible()
            expect(main.get_by_text("name: shop").first).to_be_visible()
            watch.taken()  # that it is refused is an answer, which a browser reports as an error, too
    assert RoleGrant.objects.get(user=pia, role="editor").within == WITHIN.text
    assert not Resource.objects.filter(name="shop").exists()

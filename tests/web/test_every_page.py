"""Every page in a real browser, full of what hostile people wrote: accessible in both themes, and nothing acts.

The paths are read off the URL configuration; ADDRESSES adds the questions that pages answer.
"""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from controlplane.access.cases import case_create
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import Case, GroupDraft, RuleDraft
from controlplane.builder.services import builds_sweep
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from controlplane.http.security_headers import CONTENT_SECURITY_POLICY
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.manifests import cluster, parsed
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults, zoom_faults
from tests.support.web_thread import serving_web
from tests.web.test_hostile import MALLORY, NAME, parts, paths
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import ClientFacts, Selector

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(600),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
__all__ = ["parts"]  # the fixture of test_hostile.py: one client that refuses a resource, both of them hostile

LONG = "x" * 480
# What no template of ours may reckon; 1234 * 5678 would show that one did.
TEMPLATE = "{{1234*5678}} {% debug %} ${1234*5678} <%= 1234*5678 %>"
RECKONED = "7006652"
RIGHT_TO_LEFT = "חשבון مدفوعات"
CANARIES = (f"{NAME} {TEMPLATE}", f"javascript:alert(1)//{LONG}", f"{RIGHT_TO_LEFT}\u202e{NAME}")
# The reader of the API's document is somebody else's page.
NOT_OURS = ("/api/",)
WIDE, NARROW = 1440, 390
# What says something else where there is nothing to show.
EMPTY = (
    "resources",
    "access",
    "changes",
    "change-sets",
    "snapshots",
    "builds",
    "incidents",
    "clients",
    "setup",
    "import",
)


@pytest.mark.nightly
def test_every_page__full_of_hostile_content__is_accessible_and_runs_nothing(
    admin: Client, parts: dict[str, str]
) -> None:
    write_canaries()
    pages = [path for path in addresses(parts) if is_page(admin, path)]

    sweep(admin, ["/login", *pages])

    # The sweep itself must not go blind.
    assert len(pages) >= 45


def test_chosen_pages__full_of_hostile_content__are_accessible_and_run_nothing(
    admin: Client, parts: dict[str, str]
) -> None:
    write_canaries()
    asked = f"type=cluster&name={quote(NAME, safe='')}"
    chosen = ["/", "/e/default", f"/x?e=default&t=cluster&n={quote(NAME, safe='')}&c={parts['client_id']}"]
    channel = f"/channels/{parts['channel_id']}"
    chosen += ["/channels", channel, f"{channel}/edit", "/channels/new", "/channels/new?kind=digest"]
    chosen += [
        f"/e/default/{page}" for page in (f"resource/edit?{asked}", "resources", "access", "incidents?state=all")
    ]

    sweep(admin, chosen)


def sweep(admin: Client, pages: list[str]) -> None:
    """Open each page in a browser and fail with everything that is wrong with any."""
    session = admin.cookies["sessionid"].value
    found: dict[str, list[str]] = {}

    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        watch = Watch(base)
        watch.attend(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        for path in pages:
            if path != "/login":
                context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
            faults = [*faults_of(page, base + path), *watch.taken()]
            if faults:
                found[path] = faults

    assert not found, "\n".join(f"{path}\n    " + "\n    ".join(faults[:8]) for path, faults in found.items())


def faults_of(page: Page, address: str) -> Iterator[str]:
    """Everything that is wrong with a page."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": WIDE, "height": 900})
    page.goto(address)
    if page.locator("#editor").count():
        expect(page.locator("#verdict .verdict")).to_be_visible()
    yield from axe_faults(page)
    yield from focus_faults(page)
    yield from live_faults(page)
    yield from width_faults(page, WIDE)
    yield from zoom_faults(page)
    yield from width_faults(page, NARROW)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    yield from axe_faults(page, contrast_only=True)
    if RECKONED in page.locator("body").inner_text():
        yield "a template was reckoned"


def addresses(parts: dict[str, str]) -> list[str]:
    """Every path, of an environment with data and of an empty one, and the questions that pages answer."""
    asked = f"type=cluster&name={quote(NAME, safe='')}"
    explain = f"/x?e=default&t=cluster&n={quote(NAME, safe='')}"
    here = "/e/default"
    questions = [
        explain,
        f"{explain}&c={parts['client_id']}",
        "/x?e=default&t=listener&n=missing",
        f"/search?q={quote(NAME, safe='')}",
        "/search?q=nothing-is-called-so",
        *(
            f"{here}/resource?{asked}&tab={tab}"
            for tab in ("current", "history", "links", "clients", "access", "incidents", "comments")
        ),
        f"{here}/resource/edit?{asked}",
        f"{here}/resources?name=nothing-is-called-so",
        f"{here}/access?type=cluster&name=pay",
        f"{here}/access/rule?id=1",
        f"{here}/route-cases?state=fails",
        f"{here}/route-cases/new?authority=shop.example&path=/pay",
        f"{here}/compare?from=1&to=live",
        f"{here}/rollback?to=1",
        f"{here}/incidents?state=all",
        f"{here}/incidents?q=nothing",
        f"{here}/incidents?assignee=nobody",
        "/messages?for=me",
        f"{here}/clients?q=nothing",
        f"/clients/{parts['client_id']}/resources?state=ACKED",
        f"{here}/graph?{asked}",
        f"{here}/graph?client={parts['client_id']}",
        f"{here}/request?authority=shop.example&without={quote(NAME, safe='')}",
        f"{here}/setup?family=grpc",
        *(f"/channels/new?kind={kind}" for kind in ("webhook", "pagerduty", "digest")),
        f"/channels/{parts['channel_id']}?state=failed",
        f"/change-sets/{parts['change_set_id']}/resource?{asked}",
        f"/change-sets/{parts['change_set_id']}/rule?name=new-1",
        f"/change-sets/{parts['change_set_id']}/group?name=edge",
        f"{here}/change-sets?state=review",
    ]
    empty = [f"/e/prod/{name}" for name in EMPTY]
    every = [*paths(parts), *empty, *questions]
    return [path for path in dict.fromkeys(every) if not path.startswith(NOT_OURS) and path != "/logout"]


def is_page(client: Client, path: str) -> bool:
    """Whether a browser shows it, and what it is told about what may run there."""
    answer = client.get(path)
    is_html = answer.headers.get("Content-Type", "").startswith("text/html") and answer.status_code != 405
    if is_html:
        assert "unsafe" not in CONTENT_SECURITY_POLICY
        assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY, path
    return is_html and answer.status_code != 302


def write_canaries() -> None:
    """Into what operators write; what clients write is in `parts`."""
    for number, words in enumerate(CANARIES):
        edits = [Put(parsed(cluster(f"c{number}-{words[:300]}")))]
        change_apply(environment_key="default", edits=edits, actor=MALLORY, message=words, terms=Terms(words[:150]))
    markup = NAME.partition("\u202e")[0]  # a pattern has to be printable
    selector = Selector(node_id="*", node_cluster=markup + "{% debug %}", metadata={RIGHT_TO_LEFT: LONG[:200]})
    group = GroupDraft("mallory", (selector,), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=MALLORY)
    draft = RuleDraft(Effect.DENY, f"{markup}{LONG[:100]}*", client_groups=("mallory",), message=CANARIES[2][:200])
    rule_create(environment_key="default", draft=draft, actor=MALLORY)
    case = Case(ClientFacts(node_id=NAME), "cluster", NAME, Effect.ALLOW)
    case_create(environment_key="default", case=case, blocking=False, actor=MALLORY)
    builds_sweep()

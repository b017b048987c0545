"""Pictures of every page: wide and narrow, light and dark, with data and empty. Look at them before a release.

    make demo          in one terminal
    make screenshots   in another: they are in screenshots/

Every page is found in the table of paths; a page that needs something to show is given what the demo has.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

WIDTHS: Final = (1440, 390)
THEMES: Final = ("light", "dark")
_HEIGHT: Final = 900
_SETTLE_MS: Final = 700  # what scripts add to a page once it is loaded
_CHROMIUM: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# (file name, path). After an arrow: the first link that begins so, and ends with what stands behind a star.
PAGES: Final = (
    ("home", "/"),
    ("explain", "/x?e=default&t=listener&n=pay.internal"),
    ("explain-denied", "/x?e=default&t=listener&n=echo.demo&c=demo-guest"),
    ("environments", "/environments"),
    ("environment", "/e/default"),
    ("over-time", "/e/default/over-time"),
    ("graph", "/e/default/graph"),
    ("graph-around", "/e/default/graph?type=route&name=demo-routes"),
    ("graph-client", "/e/default/graph?client=demo-guest"),
    ("tail", "/e/default/tail"),
    ("resources", "/e/default/resources"),
    ("resources-none-fits", "/e/default/resources?name=nothing-is-called-so"),
    ("resource", "/e/default/resource?type=listener&name=demo-http"),
    ("resource-history", "/e/default/resource?type=listener&name=demo-http&tab=history"),
    ("resource-links", "/e/default/resource?type=listener&name=demo-http&tab=links"),
    ("resource-clients", "/e/default/resource?type=listener&name=demo-http&tab=clients"),
    ("resource-access", "/e/default/resource?type=listener&name=demo-http&tab=access"),
    ("resource-incidents", "/e/default/resource?type=cluster&name=demo-billing&tab=incidents"),
    ("resource-edit", "/e/default/resource/edit?type=route&name=demo-routes"),
    ("resource-new", "/e/default/resources/new?type=listener"),
    ("import", "/e/default/import"),
    ("change-sets", "/e/default/change-sets"),
    ("review", "/e/default/review"),
    ("changes", "/e/default/changes"),
    ("change", "/e/default/changes -> /changes/"),
    ("change-access", "/e/default/changes?kind=access -> /changes/"),
    ("snapshots", "/e/default/snapshots"),
    ("snapshot", "/e/default/snapshots/1"),
    ("compare", "/e/default/compare?from=1&to=live"),
    ("rollback", "/e/default/rollback?to=1"),
    ("builds", "/e/default/builds"),
    ("incidents", "/e/default/incidents"),
    ("clients", "/e/default/clients"),
    ("client", "/e/default/clients -> /clients/"),
    ("client-resources", "/e/default/clients -> /clients/ -> /clients/*/resources"),
    ("tokens", "/tokens"),
    ("client-tokens", "/tokens?kind=client"),
    ("users", "/users"),
    ("user", "/users/1"),
    ("user-access", "/users/1/access"),
    ("people-groups", "/users/groups"),
    ("invitations", "/users/invitations"),
    ("invitation", "/invitation"),
    ("account", "/account"),
    ("own-access", "/account/access"),
    ("messages", "/messages"),
    ("channels", "/channels"),
    ("channel-new", "/channels/new"),
    ("channel-new-form", "/channels/new?kind=pagerduty"),
    ("audit", "/audit"),
    ("access", "/e/default/access"),
    ("access-rule", "/e/default/access/rule"),
    ("incident", "/e/default/incidents -> /incidents/"),
    ("setup", "/e/default/setup"),
    ("setup-grpc", "/e/default/setup?family=grpc&node_id=pay-1&server_features=fail_on_data_errors"),
    ("search", "/search?q=demo"),
    ("not-found", "/e/absent/resources"),
    ("code", "/codes/XDS2103"),
)
EMPTY: Final = ("resources", "change-sets", "changes", "snapshots", "builds", "incidents", "clients")


def main(base: str, password: str, out: Path) -> int:
    """Take screenshots of all pages of the console at `base` and write them to the folder `out`; returns how many pages
    could not be shown.
    """
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, browser_started(playwright) as browser:
        failed = [
            each
            for width in WIDTHS
            for theme in THEMES
            for each in _pictures(browser, base, password, out, width, theme)
        ]
    for line in failed:
        sys.stderr.write(f"{line}\n")
    made = len(list(out.glob("*.png")))
    sys.stdout.write(f"{made} pictures in {out}\n")
    return len(failed)


@contextmanager
def browser_started(playwright: Playwright) -> Iterator[Browser]:
    """A Chromium without a window, until the block ends."""
    browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    try:
        yield browser
    finally:
        browser.close()


def signed_in(
    browser: Browser,
    base: str,
    password: str,
    width: int,
    theme: str,
    picture: Path | None = None,
    height: int = _HEIGHT,
) -> Page:
    """A window of this size and theme in which the administrator is signed in. `picture`: where one of the page before
    that is written.
    """
    page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme).new_page()  # type: ignore[arg-type]
    page.goto(f"{base}/login")
    if picture:
        page.screenshot(path=picture)
    page.get_by_label("User", exact=True).fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{base}/")
    return page


def _pictures(browser: Browser, base: str, password: str, out: Path, width: int, theme: str) -> Iterator[str]:
    """Take the screenshots for one width and one theme; yields a line for each page that failed or is wider than the
    window.
    """
    page = signed_in(browser, base, password, width, theme, out / f"login-{width}-{theme}.png")
    for name, path in (*PAGES, *_empty(page, base)):
        if not _open(page, base, path):
            yield f"{name}: nothing to show at {path}"
            continue
        page.wait_for_timeout(_SETTLE_MS)
        page.screenshot(path=out / f"{name}-{width}-{theme}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
            yield f"{name}: wider than {width} pixels"
    page.context.close()


def _empty(page: Page, base: str) -> list[tuple[str, str]]:
    """The pages that list things, for an environment that has none, each as (name of the picture, path). The
    environment is created where it does not exist.
    """
    page.goto(f"{base}/environments")
    if page.get_by_role("link", name="empty", exact=True).count() == 0:
        page.get_by_label("Key", exact=True).fill("empty")
        page.get_by_role("button", name="Create environment").click()
        page.wait_for_url("**/e/empty")
    return [(f"empty-{name}", f"/e/empty/{name}") for name in EMPTY]


def _open(page: Page, base: str, path: str) -> bool:
    """Open the page at this path; where the path says so, by clicking links. Returns whether that worked."""
    start, *links = path.split(" -> ")
    answer = page.goto(base + start)
    for link in links:
        begin, _, end = link.partition("*")
        found = page.locator(f'main a[href^="{begin}"]' + (f'[href$="{end}"]' if end else ""))
        if found.count() == 0:
            return False
        found.first.click()
        page.wait_for_url(f"**{begin}*{end}*")
    return answer is not None and answer.status < 500


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], sys.argv[2], Path(sys.argv[3])) else 0)

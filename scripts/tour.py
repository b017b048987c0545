"""The pictures of docs/tour.md, taken step by step in a console that runs: what people do there every day.

    make demo                              in one terminal
    make tour                              in another: they are in docs/images/tour
    make tour PICTURES="bulk palette"      only these

An environment of its own, `shop`, is filled the first time; what is shown besides is the demo's. The same in the other
theme and on a telephone is in screenshots/, to be looked at before a picture is kept.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Error, Page, sync_playwright

from scripts.screenshots import THEMES, browser_started, signed_in

_SHOP: Final = "shop"
_WIDTH: Final = 1280
_HEIGHT: Final = 760
_NARROW: Final = 390
_PATIENCE_MS: Final = 10_000
_SETTLE_MS: Final = 700  # what scripts add to a page once it is loaded
_TEAMS: Final = {
    "billing": ("billing", "billing-eu", "invoices", "ledger", "refunds", "taxes"),
    "checkout": ("basket", "checkout", "checkout-eu", "coupons", "prices", "stock"),
    "search": ("catalog", "images", "ranking", "reviews", "search", "suggestions"),
}
_PICTURES: Final[dict[str, Callable[[Page], None]]] = {}


def _picture(take: Callable[[Page], None]) -> Callable[[Page], None]:
    """Keep a function as the steps to the picture that is called as it is. Its page is signed in, at the first page."""
    _PICTURES[take.__name__.replace("_", "-")] = take
    return take


@_picture
def filtering(page: Page) -> None:
    """What clients refuse, of what was written within two days."""
    _open(page, "/e/default/resources")
    main = page.locator("main")
    main.get_by_label("Status").select_option("refused")
    main.get_by_label("Since").fill("2 d")
    main.get_by_role("button", name="Filter").click()


@_picture
def sorting(page: Page) -> None:
    """What changed last, in dense rows."""
    _open(page, f"/e/{_SHOP}/resources?sort=-changed")
    if page.locator("html").get_attribute("data-rows") != "dense":
        page.get_by_role("button", name="Dense rows").click()


@_picture
def bulk(page: Page) -> None:
    """The page that asks before three resources have another owner."""
    _open(page, f"/e/{_SHOP}/resources?owner=checkout")
    for name in ("basket", "coupons", "prices"):
        page.get_by_label(f"Choose cluster {name}", exact=True).check()
    page.get_by_role("button", name="Set labels").click()
    page.get_by_label("Labels").fill("sale=winter")


@_picture
def views(page: Page) -> None:
    """The views of a list, one's own and those of the team."""
    path = f"/e/{_SHOP}/resources?owner=billing&sort=-changed"
    menu = page.locator("main details.menu")
    _open(page, path)
    menu.locator("summary").click()
    if menu.get_by_role("link", name="what billing owns").count() == 0:
        menu.get_by_role("link", name="Keep this as a view").click()
        page.get_by_label("Name", exact=True).fill("what billing owns")
        page.get_by_label("Offer it to everybody").check()
        page.get_by_role("button", name="Keep the view").click()
        _open(page, path)
        menu.locator("summary").click()


@_picture
def search(page: Page) -> None:
    """A word, found in names, labels, owners and messages."""
    _open(page, "/search?q=checkout")


@_picture
def palette(page: Page) -> None:
    """The palette that was opened by keys, with a command half typed."""
    _open(page, "/e/default/resources")
    page.keyboard.press("Control+k")
    page.keyboard.type("quarantine demo")
    page.locator("#palette [role=option]").first.wait_for()


@_picture
def form(page: Page) -> None:
    """The common fields of a cluster in the editor, one of them changed."""
    _open(page, f"/e/{_SHOP}/resource/edit?type=cluster&name=checkout")
    page.locator("summary", has_text="Form for the common fields").click()
    fields = page.locator("#fields")
    fields.get_by_label("Connect timeout").fill("3s")
    page.wait_for_timeout(_SETTLE_MS)  # the text beside it follows the form, and is judged anew
    _scrolled(page, "#form")


@_picture
def bundle(page: Page) -> None:
    """What exposing a service comes to: four resources, as one change or one change set."""
    _open(page, f"/e/{_SHOP}/resources/expose")
    page.get_by_label("Name", exact=True).fill("wishlist")
    page.get_by_label("Hosts").fill("wishlist.example.org")
    page.get_by_label("Addresses", exact=True).fill("10.0.0.7:8080\n10.0.0.8:8080")
    page.get_by_label("Port of a new listener").fill("8080")
    page.get_by_role("button", name="Show what it comes to").click()
    _scrolled(page, ".verdict")


@_picture
def import_diff(page: Page) -> None:
    """What an import would do: one resource new, one changed, one the same; and what of the file was left out."""
    _open(page, f"/e/{_SHOP}/import")
    clusters = [_cluster("checkout", 9), _cluster("stock", 1), _cluster("wishlist", 1)]
    page.locator("#text").fill(json.dumps({"admin": {}, "static_resources": {"clusters": clusters}}, indent=2))
    page.get_by_role("button", name="Check", exact=True).click()
    _scrolled(page, ".verdict")


@_picture
def times(page: Page) -> None:
    """Times in the zone that was chosen, which each page says."""
    _open(page, "/account#times")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.locator("section", has=page.locator("#times")).get_by_role("button", name="Save").click()
    _open(page, "/audit?environment=shop")


@_picture
def folded(page: Page) -> None:
    """What was done again and again, as one line that says how often: here the sign-ins for these pictures."""
    _open(page, "/audit?verb=login.succeeded")


def main(base: str, home: Path, out: Path, wanted: list[str]) -> int:
    """Take these pictures, or all, of the console at `base`, whose files are in `home`, and write them to the folder
    `out`; returns how many could not be taken.
    """
    unknown = [each for each in wanted if each not in _PICTURES]
    failed = [f"There is no picture '{each}': {', '.join(_PICTURES)}." for each in unknown]
    _filled(base, (home / "admin.token").read_text().strip())
    password = (home / "admin.password").read_text().strip()
    looked_at = Path("screenshots")
    for folder in (out, looked_at):
        folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, browser_started(playwright) as browser:
        for width in (_NARROW, _WIDTH):
            for theme in reversed(THEMES):
                page = signed_in(browser, base, password, width, theme, height=_HEIGHT)
                page.set_default_timeout(_PATIENCE_MS)
                kept = (width, theme) == (_WIDTH, THEMES[0])
                for name in [each for each in _PICTURES if each in wanted or not wanted]:
                    file = out / f"{name}.png" if kept else looked_at / f"tour-{name}-{width}-{theme}.png"
                    try:
                        _take(page, base, name, file)
                    except Error as error:
                        failed.append(f"{file}: {error.message.splitlines()[0]}")
                page.context.close()
    for line in failed:
        sys.stderr.write(f"{line}\n")
    return len(failed)


def _take(page: Page, base: str, name: str, file: Path) -> None:
    page.goto(base)
    _PICTURES[name](page)
    page.wait_for_timeout(_SETTLE_MS)
    page.screenshot(path=file)
    sys.stdout.write(f"{file}: {file.stat().st_size // 1000} kB\n")


def _open(page: Page, path: str) -> None:
    page.goto("/".join(page.url.split("/")[:3]) + path)


def _scrolled(page: Page, selector: str) -> None:
    """Bring the top of an element below the bar that stands above each page."""
    page.locator(selector).first.evaluate("each => { each.style.scrollMarginTop = '1rem'; each.scrollIntoView(); }")


def _filled(base: str, token: str) -> None:
    """Write what the pictures show into an environment of its own, unless it is there."""

    def xdsctl(*arguments: str, by: str = token, stdin: str = "") -> str:
        variables = {**os.environ, "XDSCTL_SERVER": base, "XDSCTL_TOKEN": by, "XDSCTL_ENVIRONMENT": _SHOP}
        command = [sys.executable, "-m", "xdsctl", *arguments]
        ran = subprocess.run(command, env=variables, input=stdin, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
        return ran.stdout.strip()

    if _SHOP in xdsctl("get", "environments", "-o", "name").split():
        return
    xdsctl("create", "environment", _SHOP, "--default-effect", "allow")
    people = {
        name: xdsctl("create", "token", name, "--scope", "editor", "--expires", "1d", "-q") for name in ("dana", "mia")
    }
    for team, names in _TEAMS.items():
        xdsctl(
            "apply",
            "-f",
            "-",
            "--owner",
            team,
            "-m",
            f"what {team} serves",
            by=people["dana"],
            stdin=_clusters(names, 1),
        )
        for name in names[:3]:
            xdsctl("label", "cluster", name, f"team={team}", by=people["dana"])
    xdsctl(
        "apply",
        "-f",
        "-",
        "--owner",
        "checkout",
        "-m",
        "more time for the sale",
        by=people["mia"],
        stdin=_clusters(_TEAMS["checkout"][:3], 5),
    )


def _clusters(names: tuple[str, ...], seconds: int) -> str:
    """Manifests of clusters with these names."""
    return "\n---\n".join(json.dumps(_cluster(name, seconds)) for name in names)


def _cluster(name: str, seconds: int) -> dict[str, object]:
    address = {"socket_address": {"address": f"{name}.shop.example", "port_value": 8080}}
    places = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": f"{seconds}s",
        "load_assignment": {"cluster_name": name, "endpoints": places},
    }


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]) else 0)

"""A real Chromium: Debian's package, or whatever `CHROMIUM` names. Nothing is downloaded."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM: Final = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
MISSING: Final = (
    "no Chromium on this machine: the pages were not tried in a browser (apt-get install chromium, or CHROMIUM=path)"
)
# No sandbox: tests run as root in containers, and show nothing but our own pages.
_ARGUMENTS: Final = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser until the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Page, base: str, password: str) -> None:
    """Sign in as the first administrator."""
    page.goto(f"{base}/login")
    page.get_by_label("User", exact=True).fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{base}/")

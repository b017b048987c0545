"""What must hold of any page in a browser, as questions to the page. Each answers with a line per fault.

axe-core (Mozilla Public License 2.0, Deque Systems) comes with the package axe-playwright-python; nothing is fetched.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Without `preload` axe does not load and parse the style sheets a second time; only a rule on turned phones needs that.
_RUN: Final = """async wanted => {
  const found = await axe.run(document, {runOnly: wanted, resultTypes: ["violations"], preload: false});
  return found.violations.flatMap((each) => each.nodes.map((node) =>
    [each.id, node.html.slice(0, 200), (node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? each.help]));
}"""
# Words that somebody sees, outside of what says the same elsewhere on a narrow page: headings of columns stand beside
# each value then, and the navigation is in a menu.
_WORDS: Final = """() => {
  const walker = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
  const words = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("thead, time, script, .only-narrow")) continue;
    if (element.checkVisibility({visibilityProperty: true})) words.push(node.data.trim().slice(0, 80));
  }
  return words;
}"""
# What keys reach, and in which order: none before its turn, each with a sign that it has the focus, and nothing that a
# pointer can press and keys cannot.
_FOCUS: Final = """() => {
  const faults = [];
  const pressed = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]";
  for (const element of document.querySelectorAll(pressed)) {
    const shown = element.outerHTML.slice(0, 160);
    if (element.tabIndex > 0) faults.push(`has a turn of its own: ${shown}`);
    if (element.disabled || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.tabIndex < 0 && !element.matches("main, [data-focus]")) faults.push(`no key reaches ${shown}`);
    element.focus({preventScroll: true, focusVisible: true});
    if (document.activeElement !== element || element.matches("main, [data-focus]")) continue;
    const style = getComputedStyle(element);
    if ((style.outlineStyle === "none" || parseFloat(style.outlineWidth) === 0) && style.boxShadow === "none")
      faults.push(`nothing shows the focus on ${shown}`);
  }
  for (const element of document.querySelectorAll("main, main *")) {
    const style = getComputedStyle(element);
    if (style.order !== "0" || style.flexDirection.endsWith("reverse"))
      faults.push(`is seen in another order than it is read: ${element.outerHTML.slice(0, 160)}`);
  }
  document.activeElement?.blur();
  return faults;
}"""
# Live parts speak when there is a pause, and each at most once in 5 s (texts.md section 8).
_LIVE: Final = """() => [...document.querySelectorAll("[aria-live], [role=status], [role=log]")].flatMap((region) => {
  const says = region.getAttribute("aria-live") ?? "polite";
  const shown = region.outerHTML.slice(0, 160);
  const inner = region.parentElement?.closest("[aria-live], [role=status], [role=log]");
  return [...(says === "polite" ? [] : [`interrupts: ${shown}`]), ...(inner ? [`speaks twice: ${shown}`] : [])];
})"""

# What htmx says of a question that it gave up since a newer one, or a new page, took its place. Of one that failed it
# says more: `htmx:sendError`.
_TAKEN_BACK: Final = ("htmx:sendAbort,", "htmx:afterRequest,")


@dataclass(slots=True)
class Watch:
    """Collects the faults that a browser reports by itself while it shows pages."""

    base: str
    faults: list[str] = field(default_factory=list)

    def attend(self, context: BrowserContext) -> None:
        """Listen to every page of this browser context."""
        host = self.base.removeprefix("http://")
        context.on("request", lambda asked: self._unless(asked.url.split("/")[2] == host, f"asks {asked.url}"))
        context.on("weberror", lambda error: self.faults.append(f"failed: {error.error}"))
        context.on("dialog", _dismisser(self.faults))
        context.on("console", lambda said: self._unless(not _is_fault(said), f"said: {said.text}"))

    def _unless(self, well: bool, fault: str) -> None:
        if not well:
            self.faults.append(fault)

    def taken(self) -> list[str]:
        """The faults since the last call."""
        found = list(self.faults)
        self.faults.clear()
        return found


def _is_fault(said: ConsoleMessage) -> bool:
    return said.type == "error" and not _is_answer(said) and not said.text.startswith(_TAKEN_BACK)


def _is_answer(said: ConsoleMessage) -> bool:
    """Whether a browser reports as an error what is an answer: that the server refuses something, or that there is no
    live tail where there is no broker.
    """
    status = "the server responded with a status of "
    no_broker = f"{status}503" in said.text and said.location["url"].partition("?")[0].endswith("/tail")
    return no_broker or f"{status}4" in said.text


def _dismisser(faults: list[str]) -> Callable[[Dialog], None]:
    def dismiss(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    return dismiss


def axe_faults(page: Page, *, contrast_only: bool = False) -> Iterator[str]:
    """The faults that axe finds by every rule of WCAG 2.2 AA and of good practice that it can judge; or by its rule on
    contrast alone. It looks from the top: further down, the bar above the page covers a part of whatever is just there.
    """
    page.evaluate("scrollTo(0, 0)")
    page.evaluate(AXE)
    wanted: Any = {"type": "rule", "values": ["color-contrast"]} if contrast_only else {"type": "tag", "values": _RULES}
    for rule, element, message in page.evaluate(_RUN, wanted):
        yield f"axe {rule}: {element}: {message}"


def width_faults(page: Page, width: int) -> Iterator[str]:
    """The fault that a page, in a window of this width, has to be scrolled sideways; nothing where it has not."""
    page.set_viewport_size({"width": width, "height": 900})
    wider = int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
    if wider > 0:
        yield f"is {wider} pixels wider than {width}"


def zoom_faults(page: Page) -> Iterator[str]:
    """The faults by which, at 200 % in a window of 1280 pixels, something is lost (WCAG 1.4.4 and 1.4.10)."""
    page.set_viewport_size({"width": 1280, "height": 900})
    before = list(page.evaluate(_WORDS))
    yield from width_faults(page, 640)
    lost = set(before) - set(page.evaluate(_WORDS))
    if lost:
        yield f"at 200 % it loses {sorted(lost)}"


def focus_faults(page: Page) -> Iterator[str]:
    """The faults by which keys do not reach a control, or not in the order in which the page is read."""
    yield from page.evaluate(_FOCUS)


def live_faults(page: Page) -> Iterator[str]:
    """The faults of live regions that interrupt, or that speak twice."""
    yield from page.evaluate(_LIVE)

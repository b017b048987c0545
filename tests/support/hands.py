"""How somebody works a page: with a pointer, with nothing but keys, or with a browser that runs no scripts.

A walk is written once and given each of these hands. Every wait is for something to be there, never for a time.
"""

from typing import Final

from playwright.sync_api import Locator, Page, expect

PATIENCE_MS: Final = 30_000  # a bound for a machine that is busy, not a time anything takes
_RELOAD_MS: Final = 300
# More stops than any page has between its first and its last one.
_MOST_KEYS: Final = 200

# Where the focus is, seen from an element: "here", "before" or "behind", or which arrow leads to it within its radio
# group. The editor is in a shadow root, whose place on the page is its host's.
_WHERE = """target => {
  const host = (node) => { while (node.getRootNode().host) node = node.getRootNode().host; return node; };
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  if (active === target) return active.matches(":focus-visible") ? "here" : "unseen";
  if (!active || active === document.body) return target.closest("main") ? "start" : "behind";
  if (active.type === "radio" && active.name === target.name && active.form === target.form)
    return active.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_PRECEDING ? "up" : "down";
  return host(active).compareDocumentPosition(host(target)) & Node.DOCUMENT_POSITION_PRECEDING ? "before" : "behind";
}"""
_KEYS: Final = {"before": "Shift+Tab", "behind": "Tab", "up": "ArrowUp", "down": "ArrowDown"}


class Pointer:
    """Uses a page with a mouse, and a keyboard to write with."""

    scripts = True

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, control: Locator) -> None:
        """Follow a link, press a button, open a disclosure, choose a radio button or a check box."""
        control.click()

    def send(self, control: Locator) -> None:
        """Press what leads to another page, and wait for that page."""
        with self.page.expect_navigation():
            self.press(control)

    def write(self, field: Locator, text: str) -> None:
        """Replace the text of a field."""
        field.fill(text)

    def choose(self, field: Locator, option: str) -> None:
        """Choose an option of a select."""
        field.select_option(label=option)

    def search(self, text: str) -> None:
        """Type a text into the search box that every page has, and wait for the result."""
        box = self.page.locator("#search")
        self.write(box, text)
        with self.page.expect_navigation():
            box.press("Enter")

    def compose(self, text: str) -> None:
        """Replace the whole manifest in the editor."""
        self.press(self.page.get_by_role("textbox", name="Manifest, YAML or JSON"))
        self._retype(text)

    def mend(self, line: int, text: str) -> None:
        """Follow the link to a finding's line, and replace that line."""
        self.press(self.page.locator("#verdict").get_by_role("link", name=f"line {line}", exact=True))
        expect(self.page.get_by_role("textbox", name="Manifest, YAML or JSON")).to_be_focused()
        self.page.keyboard.press("Shift+End")
        self.page.keyboard.insert_text(text)

    def _retype(self, text: str) -> None:
        # Written over a selection, Chromium itself would style what it inserts, which the security policy refuses.
        for key in ("Control+a", "Delete"):
            self.page.keyboard.press(key)
        self.page.keyboard.insert_text(text)

    def judged(self, words: str) -> None:
        """Wait until the server's verdict on the manifest contains these words."""
        expect(self.page.locator("#verdict").get_by_text(words)).to_be_visible()

    def until(self, sight: Locator) -> None:
        """Wait until a page that refreshes by itself shows this element."""
        expect(sight).to_be_visible()

    def reload_until(self, sight: Locator) -> None:
        """Load the page again until it shows this element."""
        left_ms = PATIENCE_MS
        while not sight.is_visible():
            assert left_ms > 0, f"never seen: {sight}\n{self.page.locator('main').inner_text()}"
            self.page.wait_for_timeout(_RELOAD_MS)
            left_ms -= _RELOAD_MS
            self.page.reload()


class Keyboard(Pointer):
    """Uses a page with keys alone: Tab, Shift+Tab, Enter, Space, arrows, letters and the console's shortcuts."""

    def press(self, control: Locator) -> None:
        """Move the focus to a control and press it, with Space where a browser wants that, else with Enter."""
        self._reach(control)
        self.page.keyboard.press("Space" if control.get_attribute("type") in {"radio", "checkbox"} else "Enter")

    def write(self, field: Locator, text: str) -> None:
        """Move the focus to a field, select its text, and type over it."""
        self._reach(field)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)

    def choose(self, field: Locator, option: str) -> None:
        """Choose an option by typing its first letters, as a select takes them."""
        self._reach(field)
        self.page.keyboard.type(option)
        expect(field.locator("option:checked")).to_have_text(option)

    def search(self, text: str) -> None:
        """Reach the search box by its shortcut and search for a text."""
        self.page.keyboard.press("/")
        expect(self.page.locator("#search")).to_be_focused()
        self.page.keyboard.insert_text(text)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def compose(self, text: str) -> None:
        """Move the focus to the editor, and type over what it holds."""
        self._reach(self.page.get_by_role("textbox", name="Manifest, YAML or JSON"))
        self._retype(text)

    def _reach(self, control: Locator) -> None:
        """Move the focus to a control; somebody who looks must see that it has arrived."""
        expect(control).to_be_visible()
        seen = ""
        for _ in range(_MOST_KEYS):
            seen = str(control.evaluate(_WHERE))
            if seen == "here":
                return
            if seen == "start":
                # The first stop of a page leads past its navigation.
                self.page.keyboard.press("Tab")
                if self.page.evaluate("document.activeElement.matches('.skip')"):
                    self.page.keyboard.press("Enter")
                continue
            assert seen in _KEYS, f"nothing shows that the focus is on {control}"
            self.page.keyboard.press(_KEYS[seen])
        raise AssertionError(f"no key leads to {control}: the focus is {seen} it")


class Plain(Pointer):
    """Uses a page with a pointer in a browser that runs no scripts."""

    scripts = False

    def compose(self, text: str) -> None:
        """Replace the manifest in the text field that stands in for the editor."""
        self.page.get_by_label("Manifest").fill(text)

    def judged(self, words: str) -> None:
        """Press the button that checks the manifest, and wait until the page contains these words."""
        self.press(self.page.get_by_role("button", name="Check"))
        expect(self.page.locator("main").get_by_text(words)).to_be_visible()

    def until(self, sight: Locator) -> None:
        """Load the page again until it shows this element: without scripts nothing refreshes."""
        self.reload_until(sight)

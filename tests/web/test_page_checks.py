"""What looks at every page finds what is wrong with one."""

import pytest

from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults, zoom_faults

pytestmark = [pytest.mark.skipif(not CHROMIUM, reason=MISSING), pytest.mark.xdist_group("browser")]

BAD = """<!doctype html><html lang=en><title>bad</title><style>
.wide { flex: none; width: 700px } a:focus, a { outline: none } .late { order: 2 }
@media (max-width: 1000px) { .lost { display: none } } .pale { color: #bbb }
</style><main style="display: flex; flex-wrap: wrap">
<h1>Bad</h1><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><p class=pale>pale</p><p class=lost>lost</p>
<a href="#x">unseen</a><button tabindex=-1>unreachable</button><input tabindex=3 aria-label=first>
<p class=late>late</p><div class=wide>wide</div><div aria-live=assertive role=status>now</div></main>"""


def test_checks__page_with_one_fault_of_each_kind__name_each() -> None:
    with chromium() as browser, browser.new_context() as context:
        watch = Watch("http://127.0.0.1:1")
        watch.attend(context)
        page = context.new_page()
        page.set_content(BAD)
        page.evaluate("setTimeout(() => alert('ran'))")
        page.evaluate("console.error('refused to run')")

        axe = "\n".join(axe_faults(page))
        pale = "\n".join(axe_faults(page, contrast_only=True))
        focus = "\n".join(focus_faults(page))
        zoom = "\n".join(zoom_faults(page))
        narrow = list(width_faults(page, 390))
        live = list(live_faults(page))
        done = watch.taken()

    assert "axe image-alt" in axe
    assert "axe color-contrast" in pale
    for fault in ("has a turn of its own", "no key reaches <button", "nothing shows the focus on <a", "another order"):
        assert fault in focus
    assert "wider than 640" in zoom
    assert "it loses ['lost']" in zoom
    assert narrow
    assert [each for each in live if each.startswith("interrupts")]
    assert {"dialog: ran", "said: refused to run"} <= set(done)
    assert watch.taken() == []

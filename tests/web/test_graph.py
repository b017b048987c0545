"""The graph's page: a table for everybody, and a picture that is walked by keys."""

import json
import time
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from bench import console_fleet
from controlplane.console.live import INTERVAL_S
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet, publish
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.facts import subscribed
from tests.support.hands import PATIENCE_MS
from tests.support.manifests import cluster, route
from tests.support.page_checks import Watch, axe_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
in_browser = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
]
GRAPH = "/e/default/graph"
# The bounds of issue 2.4.
FIRST_PICTURE_MS = 1_500
FRAME_MS = 50


def written() -> None:
    publish(cluster("pay"), route("edge", "pay"), route("lost", "gone", domain="lost.example"))


def test_page__without_scripts__has_every_node_with_what_it_refers_to(admin: Client) -> None:
    written()

    text = page(admin, GRAPH)

    table = text.partition("<tbody>")[2]
    assert table.count('<th scope="row">') == 3
    assert "gone" in table
    assert "missing" in table
    assert "1 to" not in text


def test_page__around_a_resource__leads_there_from_its_page(admin: Client) -> None:
    written()

    here = f"{GRAPH}?type=cluster&amp;name=pay"
    table = page(admin, here.replace("&amp;", "&")).partition("<tbody>")[2]

    assert here in page(admin, "/e/default/resource?type=cluster&name=pay")
    assert "edge" in table
    assert "lost" not in table


def test_page__for_a_client__says_what_it_gets(admin: Client) -> None:
    written()
    Fleet(1)

    table = page(admin, f"{GRAPH}?client=node-1").partition("<tbody>")[2]

    assert "is served it" in table
    assert "There is a problem" in page(admin, f"{GRAPH}?client=nobody", status=404)


def test_data__of_a_graph__places_every_node(admin: Client) -> None:
    written()

    found: Any = json.loads(page(admin, f"{GRAPH}?part=data"))

    assert [(found["types"][node[0]], node[1]) for node in found["nodes"]] == [
        ("cluster", "gone"),
        ("cluster", "pay"),
        ("route", "edge"),
        ("route", "lost"),
    ]
    assert found["edges"] == [[2, 1], [3, 0]]
    assert len({tuple(node[6:8]) for node in found["nodes"]}) == 4


def test_data__for_a_client_that_is_told_an_error__says_of_which_node(admin: Client) -> None:
    written()
    Fleet(1).learn(subscribed("pay", "gone"))

    found: Any = json.loads(page(admin, f"{GRAPH}?client=node-1&part=data"))

    assert [found["nodes"][place][1] for place in found["told"]] == ["gone"]
    assert json.loads(page(admin, f"{GRAPH}?part=data"))["told"] == []


class TestInBrowser:
    """What only a browser shows."""

    pytestmark = in_browser

    def test_picture__walked_by_keys__says_where_one_is_and_opens_it(self, admin: Client) -> None:
        written()
        with serving_web() as base, chromium() as browser, browser.new_context() as context:
            watch = Watch(base)
            watch.attend(context)
            context.set_default_timeout(PATIENCE_MS)
            shown = opened(context.new_page(), admin, base, f"{GRAPH}?type=route&name=edge")
            said, picture = shown.locator("#graph-said"), shown.locator("#graph-picture")

            picture.focus()
            shown.keyboard.press("ArrowRight")
            expect(said).to_have_text("route edge: r1 · unused; refers to 1, referred to by 0.")
            shown.keyboard.press("ArrowRight")
            expect(said).to_have_text("cluster pay: r1 · published; refers to 0, referred to by 1.")
            faults = [*axe_faults(shown), *width_faults(shown, 390)]
            picture.focus()
            shown.keyboard.press("Enter")
            shown.wait_for_url("**/e/default/resource?type=cluster&name=pay")
            faults += watch.taken()

        assert faults == []

    @pytest.mark.nightly
    def test_picture__of_ten_thousand_resources__is_there_soon_and_moves_smoothly(self, admin: Client) -> None:
        console_fleet.resources_write(resources=10_000, changes=1)
        console_fleet.clients_report(clients=1_000, resources=10_000)
        with serving_web() as base, chromium() as browser, browser.new_context() as context:
            context.set_default_timeout(PATIENCE_MS)
            shown = context.new_page()
            opened(shown, admin, base, GRAPH)  # what a process reads once is read
            took_ms = sorted(first_picture_ms(shown, admin, base) for _ in range(3))[1]
            shown.locator("#graph-picture").focus()
            frames = moved(shown)
            for _ in range(6):  # nearer: most of it is out of sight, and is drawn when it comes in
                shown.keyboard.press("+")
            nearer = moved(shown)

        for words, each in (("all of it", frames), ("nearer", nearer)):
            print(f"{words}: slowest frame of 60 {each[-1]:.0f} ms, median {each[30]:.0f} ms")  # noqa: T201 - a figure of the night
        print(f"first picture {took_ms:.0f} ms")  # noqa: T201 - as above
        assert took_ms <= FIRST_PICTURE_MS
        assert max(frames[-3], nearer[-3]) <= FRAME_MS  # two of sixty are the machine's


def opened(shown: Page, admin: Client, base: str, path: str) -> Page:
    """The page with its picture drawn."""
    shown.context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
    shown.goto(base + path)
    shown.wait_for_selector("#graph[data-drawn]")
    return shown


def first_picture_ms(shown: Page, admin: Client, base: str) -> float:
    """How long the page takes until its picture is drawn, once what is kept for those who look at once is too old."""
    time.sleep(INTERVAL_S + 0.5)
    began = time.perf_counter()
    opened(shown, admin, base, GRAPH)
    return (time.perf_counter() - began) * 1000


def moved(shown: Page) -> list[float]:
    """The milliseconds of 60 frames while the picture is moved to and fro, the shortest first."""
    frames: list[float] = shown.evaluate(
        """() => new Promise((done) => {
            const picture = document.getElementById("graph-picture"), frames = [];
            let last = performance.now();
            const frame = (now) => {
                frames.push(now - last);
                last = now;
                if (frames.length > 60) { done(frames.slice(1)); return; }
                const key = ["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp"][Math.floor(frames.length / 2) % 4];
                picture.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true }));
                requestAnimationFrame(frame);
            };
            requestAnimationFrame(frame);
        })"""
    )
    return sorted(frames)

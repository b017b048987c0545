"""The ways an operator goes, from the first login to the way back: real browser, real Parley, real Envoy and gRPC.

Each walk is told once and gone by several hands: with a pointer, with keys alone, and without scripts.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.test_nack import UNKNOWN_CHECKER, timeouts
from tests.support.backends import grpc_backend, http_backend
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.envoy import Envoy, envoy_with
from tests.support.grpc_client import GrpcClient, grpc_client
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.manifests import api_listener, cluster, endpoints, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
]
expect.set_options(timeout=PATIENCE_MS)
PATIENCE_S = PATIENCE_MS / 1000
MOST_S = 30  # from a line of a log to the line of the manifest (issue 2.10)
HANDS = {"pointer": Pointer, "keys": Keyboard, "plain": Plain}


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("walks") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@dataclass(slots=True)
class Session:
    """Somebody who is signed in, and what their browser complains of."""

    hand: Pointer
    home: str
    complaints: list[str]


# By pointer is what people do, and what keys and pages without scripts do as well: those are tried every time.
POINTER = pytest.param("pointer", marks=pytest.mark.nightly)


@pytest.fixture(scope="module", params=[POINTER, "keys", "plain"])
def session(request: pytest.FixtureRequest, browser: Browser, parley: Parley) -> Iterator[Session]:
    """The first login, by each hand."""
    kind = HANDS[request.param]
    home = f"http://127.0.0.1:{parley.web_port}/"
    complaints: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=kind.scripts) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        page = context.new_page()
        page.goto(home)
        hand = kind(page)
        hand.write(page.get_by_label("User", exact=True), "admin")
        hand.write(page.get_by_label("Password"), (parley.home / "admin.password").read_text().strip())
        hand.press(page.get_by_role("button", name="Sign in"))
        page.wait_for_url(home)
        yield Session(hand, home, complaints)


@pytest.fixture
def hand(session: Session) -> Iterator[Pointer]:
    """At home. At the end: no script failed, and nothing broke the security policy."""
    session.hand.page.goto(session.home)
    session.complaints.clear()
    yield session.hand
    # What the server refuses is an answer, which a browser reports as an error, too.
    assert [each for each in session.complaints if "the server responded with a status of 4" not in each] == []


# Without scripts the editor is a text field: test_browser.py saves with it.
@pytest.mark.parametrize("session", [POINTER, "keys"], indirect=True)
def test_first_resource__two_mistakes_then_one_that_envoy_refuses__is_mended_published_and_quarantined(
    hand: Pointer, tmp_path: Path
) -> None:
    page, main = hand.page, hand.page.locator("main")
    name = f"first-{type(hand).__name__}".lower()

    # Home leads to the setup guide, whose file a real Envoy is started with; the guide sees it arrive.
    with envoy_from_setup_guide(hand, f"edge-{name}", tmp_path) as proxy:
        hand.until(main.locator("li", has_text="A client accepts what it is sent").get_by_text("done"))

        # A resource with two mistakes: each is marked, and mended where its marker leads.
        place(hand, "Resources")
        hand.press(main.get_by_role("link", name="New resource"))
        hand.compose(text_of(static(name, connect_timeout="-1s", lb_polcy="RANDOM")))
        hand.judged("2 problems")
        expect(page.locator(".cm-lint-marker-error")).to_have_count(2)
        hand.mend(6, '  "lb_policy": "RANDOM"')
        hand.judged("1 problem")
        hand.mend(4, '  "connect_timeout": "1s",')
        hand.judged("Sound; saving creates cluster")
        save(hand, "first of all")
        hand.until(main.get_by_text("Every client that was sent it runs it."))
        assert timeouts(proxy)[name] == "1s"

        # Break it, in a way that only a proxy can know.
        hand.press(main.get_by_role("link", name=name, exact=True))
        hand.press(main.get_by_role("link", name="Edit"))
        hand.compose(text_of(static(name, health_checks=[UNKNOWN_CHECKER])))
        hand.judged("Sound; saving updates cluster")
        save(hand, "check its health")
        hand.until(main.get_by_role("link", name="Open the incident"))
        hand.press(main.get_by_role("link", name="Open the incident"))
        expect(main.get_by_role("heading", level=1, name="is refused")).to_be_visible()
        expect(main.get_by_label("The text of the NACK").first).to_contain_text("no.such.checker")
        incident = page.url

        # Back to what was acknowledged, for this resource alone.
        hand.write(main.get_by_role("textbox", name="Go back to r1"), "the edge refuses it")
        hand.press(main.get_by_role("button", name="Quarantine r2"))
        expect(main.get_by_text("r1 is served in its place.")).to_be_visible()

        # Mend it: that ends quarantine and incident.
        hand.press(main.get_by_role("link", name="Mend it in the editor"))
        hand.compose(text_of(static(name, connect_timeout="9s")))
        hand.judged("Sound; saving updates cluster")
        save(hand, "without the check")
        hand.until(main.get_by_text("Every client that was sent it runs it."))
        assert timeouts(proxy)[name] == "9s"
        place(hand, "Incidents")
        hand.choose(main.get_by_label("State"), main.locator("option[value=resolved]").inner_text())
        hand.send(main.get_by_role("button", name="Filter"))
        hand.reload_until(main.get_by_role("link", name=f"cluster {name} r2"))
        hand.press(main.get_by_role("link", name=f"cluster {name} r2"))
        expect(main.locator(".page-head").get_by_text("resolved")).to_be_visible()
        assert page.url == incident


def test_denied_client__its_error_text_is_pasted__leads_to_a_rule_that_allows_it(hand: Pointer, parley: Parley) -> None:
    page, main = hand.page, hand.page.locator("main")
    name = f"vault-{type(hand).__name__}".lower()
    with (
        grpc_backend("open") as backend,
        # It may have been served before the rule reaches ADS, and must then not go on with what it has (A88).
        grpc_from_setup_guide(hand, f"app-{name}", "fail_on_data_errors") as client,
    ):
        parley.apply_and_publish(
            cluster(name, eds=True), endpoints(name, backend), route(name, name), api_listener(name, name)
        )

        # Deny it.
        place(hand, "Access")
        hand.press(main.get_by_role("link", name="New rule"))
        hand.press(main.get_by_role("radio", name="deny"))
        hand.write(main.get_by_label("Names"), f"{name}*")
        hand.press(main.get_by_role("checkbox", name="Listener"))
        hand.write(main.get_by_label("your words for clients"), "ask the vault team")
        hand.press(main.get_by_role("radio", name="before all other rules"))
        hand.press(main.get_by_role("button", name="Add the rule"))
        expect(main.get_by_text("They read: “ask the vault team”").first).to_be_visible()
        expect(main.get_by_role("status").first).to_be_in_viewport()
        denied = eventually(
            lambda: client.call(f"xds:///{name}"), lambda got: "XDS2103" in got.text, within_s=PATIENCE_S
        )

        # What the application logged is all that somebody needs.
        hand.search(denied.text)
        hand.reload_until(main.get_by_role("heading", level=1).get_by_text(f"app-{name}"))
        expect(main.locator(".answer-sentence")).to_contain_text("denies Listener")
        hand.press(main.get_by_role("link", name="Propose a rule that allows it"))
        expect(main.get_by_label("Names")).to_have_value(name)
        hand.press(main.get_by_role("checkbox", name="Every client is meant"))
        hand.press(main.get_by_role("button", name="Add the rule"))
        expect(main.get_by_role("status").get_by_text(name).first).to_be_visible()
        eventually(lambda: client.call(f"xds:///{name}").code, lambda code: code == "OK", within_s=PATIENCE_S)

        # Asked again, the answer is yes.
        hand.search(denied.text)
        hand.reload_until(main.locator("#answer").get_by_text("yes", exact=False))
        expect(page.get_by_role("link", name="Propose a rule that allows it")).to_have_count(0)


def test_request__the_line_of_a_404_is_pasted__leads_to_the_line_of_the_manifest(
    hand: Pointer, parley: Parley, tmp_path: Path
) -> None:
    page, main = hand.page, hand.page.locator("main")
    name = f"shop-{type(hand).__name__}".lower()
    [port] = free_ports(1)
    with http_backend("here you are") as backend, envoy_from_setup_guide(hand, f"edge-{name}", tmp_path) as proxy:
        routes = route(name, name)
        routes["virtual_hosts"] = [
            {"name": "shop", "domains": ["*"], "routes": [to(name, "/cart"), to(name, "/search")]}
        ]
        parley.apply_and_publish(cluster(name, eds=True), endpoints(name, backend), routes, logging(name, port))
        eventually(lambda: answered(port, "/cart"), lambda status: status == 200, within_s=PATIENCE_S)
        assert answered(port, "/pay") == 404
        line = eventually(lambda: logged(proxy, "/pay"), bool, within_s=PATIENCE_S)
        asked = {"authority": f"127.0.0.1:{port}", "path": "/pay", "client": f"edge-{name}"}
        way = "/environments/default/requests/explain"
        eventually(
            lambda: parley.call("POST", way, asked).body.get("answer"),
            lambda found: found == "refused",
            within_s=PATIENCE_S,
        )

        began = time.monotonic()
        place(hand, "Requests")
        hand.write(main.get_by_label("The line", exact=True), line)
        hand.write(main.get_by_label("Client that wrote it"), f"edge-{name}")
        hand.send(main.get_by_role("button", name="Read the line"))
        expect(main.locator("#answer")).to_have_text("404: nothing takes it")
        expect(main.get_by_text("The proxy logged NR: no route, or no filter chain. So do we say.")).to_be_visible()
        expect(main.get_by_text("wants a path that begins with '/cart'")).to_be_visible()
        hand.send(main.get_by_role("link", name="See it in the manifest"))
        expect(main.locator("mark")).to_have_text("  routes:")
        expect(main.locator("mark")).to_be_in_viewport()
        assert time.monotonic() - began < MOST_S
        assert f"name={name}" in page.url


def test_rollback__with_hold__makes_the_old_ones_run_and_refuses_changes_until_released(
    hand: Pointer, parley: Parley, tmp_path: Path
) -> None:
    main = hand.page.locator("main")
    name = f"back-{type(hand).__name__}".lower()
    with envoy_from_setup_guide(hand, f"edge-{name}", tmp_path) as proxy:
        good = parley.apply_and_publish(static(name))
        parley.apply_and_publish(static(name, connect_timeout="5s"))
        eventually(lambda: timeouts(proxy).get(name), lambda found: found == "5s", within_s=PATIENCE_S)

        place(hand, "Snapshots")
        row = main.get_by_role("row").filter(has=hand.page.get_by_role("link", name=str(good["epoch"]), exact=True))
        hand.press(row.get_by_role("link", name="roll back"))
        hand.write(main.get_by_label("Reason"), "five seconds are too many")
        hand.press(main.get_by_role("button", name="Roll back"))
        expect(main.get_by_text("default is on hold:")).to_be_visible()
        hand.until(main.get_by_text("Every client that was sent it runs it."))
        assert timeouts(proxy)[name] == "1s"

        # A change is refused, with the reason and the way on.
        hand.press(main.get_by_role("link", name=name, exact=True))
        hand.press(main.get_by_role("link", name="Edit"))
        hand.compose(text_of(static(name, connect_timeout="7s")))
        hand.judged("Release the hold, then try again.")
        hand.press(main.get_by_role("link", name="Release it"))
        hand.press(main.get_by_role("button", name="Release the hold"))
        expect(main.get_by_text("default is on hold:")).to_have_count(0)


def to(name: str, prefix: str) -> dict[str, Any]:
    return {"match": {"prefix": prefix}, "route": {"cluster": name}}


def logging(name: str, port: int) -> dict[str, Any]:
    """A listener that writes a line for each request in Envoy's default format."""
    found: dict[str, Any] = listener(name, name, port)
    log = "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"
    manager = found["filter_chains"][0]["filters"][0]["typed_config"]
    manager["access_log"] = [{"name": "envoy.access_loggers.stdout", "typed_config": {"@type": log}}]
    return found


def answered(port: int, path: str) -> int:
    """The status of the answer to a request; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def logged(proxy: Envoy, path: str) -> str:
    """The line about a request in what Envoy wrote, which it does every 10 s; empty before that."""
    return next((line for line in proxy.log.read_text().splitlines() if f" {path} HTTP" in line), "")


@contextmanager
def envoy_from_setup_guide(hand: Pointer, node_id: str, directory: Path) -> Iterator[Envoy]:
    """An Envoy with the very file that the guide shows; only the port of its own pages is any that is free."""
    configuration = bootstrap_of_guide(hand, node_id, "Envoy")
    configuration["admin"]["address"]["socket_address"]["port_value"] = 0
    with envoy_with(directory, configuration) as proxy:
        yield proxy


@contextmanager
def grpc_from_setup_guide(hand: Pointer, node_id: str, feature: str) -> Iterator[GrpcClient]:
    with grpc_client(bootstrap_of_guide(hand, node_id, "gRPC", feature)) as client:
        yield client


def bootstrap_of_guide(hand: Pointer, node_id: str, family: str, feature: str = "") -> dict[str, Any]:
    """What the guide shows; with a server feature, once it is ticked there."""
    main = hand.page.locator("main")
    place(hand, "Setup guide")
    hand.choose(main.get_by_label("Client", exact=True), family)
    hand.write(main.get_by_label("Node id"), node_id)
    hand.press(main.get_by_role("button", name="Make the file"))
    shown = main.get_by_label("Bootstrap file")
    expect(shown).to_contain_text(f'"{node_id}"')
    if feature:
        expect(shown).not_to_contain_text(feature)
        hand.press(main.get_by_role("checkbox", name=feature))
        hand.press(main.get_by_role("button", name="Make the file"))
        expect(shown).to_contain_text(f'"{feature}"')
    return dict(json.loads(shown.inner_text()))


def place(hand: Pointer, name: str) -> None:
    """Go there by the navigation."""
    hand.send(hand.page.locator(".nav-wide").get_by_role("link", name=name, exact=True))


def save(hand: Pointer, message: str) -> None:
    """Publish what the editor holds; its change is shown."""
    main = hand.page.locator("main")
    hand.write(main.get_by_label("What changes, and why"), message)
    hand.press(main.get_by_role("button", name="Save and publish"))
    hand.page.wait_for_url("**/changes/*")
    expect(main.get_by_role("heading", name=message)).to_be_visible()


def static(name: str, **more: object) -> dict[str, object]:
    return cluster(name, **{"type": "STATIC"} | more)  # type: ignore[arg-type]


def text_of(tree: dict[str, object]) -> str:
    return json.dumps(tree, indent=2)

"""What refreshes while a page is open costs the fleet's tables one look an interval, however many look at it."""

import re
import threading
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models import RoleGrant
from controlplane.clients.models import Client as Row
from controlplane.console import live
from controlplane.console.live import shared
from controlplane.database.aliases import READER
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.services import rollout_tick
from tests.services.incidents.fleet import Fleet, publish
from tests.services.rollouts.clients import environment_id, switch_on
from tests.support.manifests import cluster
from tests.web.conftest import USERS, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

# Who asks, and whether they may: that is asked for each request.
OF_THE_VIEWER = {"django_session", "auth_user", "auth_group", "auth_user_groups", "accounts_rolegrant"}
OF_THE_VIEWER |= {"accounts_signedinbrowser"}  # where they are seen for the first time
ABOUT_RIGHTS = OF_THE_VIEWER | {"catalog_environment"}


@pytest.fixture(autouse=True)
def one_long_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered yet, and no interval ends by itself, however slow this machine is."""
    monkeypatch.setattr(live, "INTERVAL_S", 3_600)
    cache.clear()


def viewers(count: int) -> list[Client]:
    """People who may read `default`."""
    found = []
    for number in range(count):
        user = USERS.objects.create_user(f"viewer-{number}")
        RoleGrant.objects.create(user=user, role="viewer", environment="default")
        browser = Client()
        browser.force_login(user)
        found.append(browser)
    return found


def tables(browser: Client, path: str) -> set[str]:
    """The tables that a request reads."""
    with CaptureQueriesContext(connection) as queries:
        page(browser, path)
    return {name for query in queries.captured_queries for name in re.findall(r'(?:FROM|JOIN) "(\w+)"', query["sql"])}


PARTS = {
    "console/home.html": "/?part=now",
    "setup/guide.html": "/e/default/setup?part=ticks",
    "changes/progress.html": "change",
    "clients/client.html": "client",
    "rollouts/detail.html": "rollout",
}


def test_parts__every_template_that_refreshes_itself__is_looked_at_here() -> None:
    templates = Path(settings.BASE_DIR) / "templates"
    refresh = {
        str(path.relative_to(templates))
        for path in templates.rglob("*.html")
        if re.search(r'hx-trigger="[^"]*every ', path.read_text(encoding="utf-8"))
    }

    assert refresh == PARTS.keys()


def opened_rollout() -> str:
    """The path of a rollout that some clients are asked by and that waits for a person."""
    switch_on(mode="steps", steps=[{"clients": 1, "approve": True}, {"percent": 100}])
    publish(cluster("pay", connect_timeout="4s"))
    rollout_tick(environment_id=environment_id())
    return f"/rollouts/{Rollout.objects.get().public_id}"


def looked_at(part: str) -> list[str]:
    """The paths of what refreshes on a page."""
    change = publish(cluster("pay", connect_timeout="3s"))
    client = Row.objects.get(node_id="node-2").pk
    if part == "rollout":
        path = opened_rollout()
        return [f"{path}?part=now", f"{path}?part=chart", f"{path}?part=clients&side=stable"]
    return [{"change": f"/changes/{change}?part=progress", "client": f"/clients/{client}?part=tail"}.get(part, part)]


@pytest.mark.parametrize("part", PARTS.values())
def test_part__many_look_at_it_in_one_interval__the_first_reads_and_the_others_only_their_rights(
    part: str, fleet: Fleet
) -> None:
    paths = looked_at(part)
    first, *others = viewers(4)

    read = set().union(*(tables(first, path) for path in paths))
    again = [tables(each, path) for each in others for path in paths]

    # Whether one may see a change or a client is read from it, with all that is said of it in the same query.
    labelled = "clients_clientlabels"
    subject = {
        "change": {"catalog_change", "changesets_changeset", "changesets_changesetchange"},
        "client": {"clients_client", "clients_stream", "clients_subscription", "clients_nameset", labelled},
        "rollout": {"rollouts_rollout"},
    }
    allowed = ABOUT_RIGHTS | subject.get(part, set())
    assert read > allowed & read
    assert [asked - allowed for asked in again] == [set()] * len(again)


def test_part__interval_over__is_made_anew(fleet: Fleet) -> None:
    browser = viewers(1)[0]
    before = page(browser, "/?part=now")
    Row.objects.filter(node_id="node-3").delete()

    within = page(browser, "/?part=now")
    cache.clear()

    assert '<a href="/e/default/clients">3</a>' in before
    assert '<a href="/e/default/clients">3</a>' in within
    assert '<a href="/e/default/clients">2</a>' in page(browser, "/?part=now")


def test_home_part__somebody_of_another_environment__is_not_shown_what_others_share(fleet: Fleet) -> None:
    page(viewers(1)[0], "/?part=now")
    stranger = USERS.objects.create_user("stranger")
    RoleGrant.objects.create(user=stranger, role="viewer", environment="prod")
    browser = Client()
    browser.force_login(stranger)

    shown = page(browser, "/?part=now")

    assert "/e/prod" in shown
    assert "/e/default" not in shown


def test_shared__asked_by_many_threads_at_once__is_made_once() -> None:
    made: list[int] = []
    ready = threading.Barrier(8)

    def make() -> int:
        made.append(1)
        return len(made)

    def ask() -> None:
        ready.wait(timeout=30)
        found.append(shared("one", make))

    found: list[int] = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert (found, made) == ([1] * 8, [1])

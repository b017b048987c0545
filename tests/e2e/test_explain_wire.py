"""What clients have, held against the wire (truth.md H4): in each situation of the table a real client does the thing,
and every door says what the client has: REST by client and by resource, xdsctl, the console, CSDS and Explain.
"""

import html
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.happenings import World, happened, refusing_slow_ones
from tests.e2e.situations import (
    ACKED,
    ERROR_SENT,
    NACKED,
    NOT_IN_USE,
    SAYS,
    SENT,
    SILENT,
    SITUATIONS,
    UNKNOWN,
    Situation,
)
from tests.support.data_planes import Held
from tests.support.doors import Doors, Row, Status, shown_since
from tests.support.manifests import cluster
from tests.support.waiting import eventually
from tests.support.xdsctl import DONE, NO, UNDECIDED
from xdsclient import Variant
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("explain_wire")]

EXITS = {"yes": DONE, "no": NO, "unknown": UNDECIDED}
# CSDS has words of its own, of what a server knows.
CSDS = {ACKED: "SYNCED", SENT: "STALE", NACKED: "ERROR", ERROR_SENT: "NOT_SENT", SILENT: "NOT_SENT"}
NOWHERE = Status("", "", "")
SOON_S = 2.0

every_situation = pytest.mark.parametrize("case", SITUATIONS, ids=str)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with happened(tmp_path_factory.mktemp("explain")) as found:
        _settle(found)
        yield found


def _settle(world: World) -> None:
    """Wait until what was acknowledged is written, which is a moment later; a row that stays wrong is the table's to
    find.
    """
    late = [each for each in SITUATIONS if each.state is not None]

    def settled() -> bool:
        world.doors.rest_by_client.cache_clear()
        rows = {client: world.doors.rest_by_client(client) for client in {each.client for each in late}}
        return all((row := rows[each.client].get((each.type, each.name))) and row.state == each.state for each in late)

    try:
        eventually(settled, within_s=10, every_s=0.5)
    except AssertionError:
        return


def test_table__has_forty_situations_in_both_variants_and_of_envoy_and_grpc() -> None:
    clients = {each.client for each in SITUATIONS}

    assert len(SITUATIONS) >= 40
    assert {"envoy-sotw", "envoy-delta", "grpc", "edge-sotw", "edge-delta"} <= clients
    assert {each.state for each in SITUATIONS} >= {ACKED, SENT, NACKED, ERROR_SENT, UNKNOWN, None}


@every_situation
def test_doors__asked_what_a_client_has__all_say_what_it_has(world: World, case: Situation) -> None:
    doors, key = world.doors, (case.type, case.name)
    on_wire = world.wire[case.client].get(key, Held("", ""))
    row = doors.rest_by_client(case.client).get(key)

    assert on_wire.state == case.wire, on_wire
    if case.state is None:
        assert row is None
        assert doors.xdsctl_by_client(case.environment, case.client).get(key) is None
        assert (case.client, *key) not in doors.csds()
        assert doors.own_page_of_client(case.client).get(key) is None
        return
    assert row is not None
    assert row[:4] == Row(case.state, case.revision, case.runs, case.code or None, None)[:4]
    assert case.words in (row.message or "")
    if case.state is ERROR_SENT:
        assert row.message == on_wire.text  # word for word
    assert doors.xdsctl_by_client(case.environment, case.client).get(key) == row
    assert doors.page_of_client(case.client)[key].says(row)
    connected = case.state is not UNKNOWN
    own = doors.own_page_of_client(case.client).get(key)
    # Since when is a question to the history, which the page of resources asks.
    assert own is None if not connected else own is not None and own._replace(since=shown_since(row)).says(row)
    assert doors.rest_by_resource(case.environment, *key).get(case.client) == (row if connected else None)
    assert doors.xdsctl_by_resource(case.environment, *key).get(case.client) == (row if connected else None)
    shown = doors.page_of_resource(case.environment, *key)
    assert case.client not in shown if not connected else not shown or shown[case.client].says(row)
    status = doors.csds().get((case.client, *key), NOWHERE)
    assert status.state == (CSDS[case.state] if connected else "")
    # In SotW a resource has no version of its own on the wire: the status has that of the response (K1).
    own_version = case.client.endswith("-delta")
    known = row.version or "" if connected else ""
    assert status.version == known if own_version else bool(status.version) == bool(known)
    if case.state in {NACKED, ERROR_SENT}:
        assert (row.message or "") in status.details


@every_situation
def test_explain__situation_on_the_wire__is_told_as_it_is_by_rest_xdsctl_and_page(
    world: World, case: Situation
) -> None:
    query = f"type={case.type}&name={case.name}&client={case.client}"

    said = world.parley.call("GET", f"/explain?environment=default&{query}").body
    typed = world.xdsctl("explain", case.client, case.type, case.name)
    page = world.console.open(f"/x?e=default&t={case.type}&n={case.name}&c={case.client}").decode()

    assert said["answer"] == case.answer, said
    assert case.sentence in said["sentence"]
    if case.state is ERROR_SENT and case.environment == "default":
        assert said["code"] == case.code
        assert said["told"] == world.wire[case.client][case.type, case.name].text
    assert typed.status == EXITS[case.answer]
    assert [rung["text"] for rung in said["rungs"] if rung["text"] not in typed.out] == []
    assert said["sentence"] in html.unescape(page)


@pytest.mark.parametrize("variant", Variant, ids=str)
def test_explain__each_of_five_events__is_definite_within_two_seconds(world: World, variant: Variant) -> None:
    """A client acknowledged; it was told an error; it refused a change and goes on with what it had; what was in the
    refused response besides is taken; what it had was taken away (interfaces.md section 8).
    """
    parley, node, end = world.parley, f"five-{variant.value}", variant.value
    mine, beside, bad = f"mine-{end}", f"beside-{end}", f"bad-{end}"
    parley.apply_and_publish(cluster(mine), cluster(beside), cluster(bad))
    plane = world.planes.start(node, reads=[refusing_slow_ones(bad)], variant=variant)

    def explained(name: str) -> Any:
        return parley.call("GET", f"/explain?environment=default&type=cluster&name={name}&client={node}").body

    def definite(name: str, state: str, answer: str, words: str) -> None:
        """Explain says it, two seconds after the client had it so at the latest."""
        eventually(lambda: plane.held()["cluster", name].state, lambda found: found == state, within_s=10, every_s=0.01)
        eventually(
            lambda: explained(name),
            lambda said: said.get("answer") == answer and words in str(said),
            within_s=SOON_S,
        )

    plane.ask(CLUSTER, mine, beside, bad, "denied")
    definite(mine, "acked", "yes", f"Cluster '{mine}' is served")
    definite("denied", "received_error", "no", "XDS2103")
    parley.apply_and_publish(cluster(bad, connect_timeout="9s"), cluster(beside, connect_timeout="9s"))
    definite(bad, "acked", "no", SAYS)  # it was given back what it had
    definite(beside, "acked", "yes", "It runs r2.")
    parley.apply_and_publish(delete=[{"type": "cluster", "name": mine}], losing=9)
    definite(mine, "received_error", "no", "XDS2102")


def test_explain__what_cannot_be_decided__is_so_on_the_wire(world: World) -> None:
    """Two clients that nothing told apart but metadata, which nobody keeps, are told different things."""
    assert world.wire["edge-sotw"]["cluster", "for-some"].state == "acked"
    assert world.wire["canary-sotw"]["cluster", "for-some"].state == "received_error"


# Held, not in use yet (truth.md H5).


@pytest.fixture(scope="module")
def later(world: World) -> Doors:
    """The doors, half a minute after everybody acknowledged what it holds."""

    def said() -> bool:
        rows = {client: world.doors.now(client) for client in {each.client for each in NOT_IN_USE}}
        return all((rows[each.client][each.type, each.name].message or "") == each.words for each in NOT_IN_USE)

    eventually(said, within_s=45, every_s=1)
    return Doors(world.parley, world.console, world.xdsctl)


@pytest.mark.parametrize("case", NOT_IN_USE, ids=str)
def test_doors__acknowledged_and_not_in_use__all_say_what_it_did_not_ask_for(
    world: World, later: Doors, case: Situation
) -> None:
    key = (case.type, case.name)
    row = later.rest_by_client(case.client)[key]
    query = f"type={case.type}&name={case.name}&client={case.client}"

    said = world.parley.call("GET", f"/explain?environment=default&{query}").body
    typed = world.xdsctl("explain", case.client, case.type, case.name)

    assert world.wire[case.client].get(key, Held("", "")).state == ("acked" if case.client.startswith("idle") else "")
    assert row[:5] == Row(ACKED, case.revision, case.runs, None, case.words)[:5]
    assert later.rest_by_resource("default", *key)[case.client] == row
    assert later.xdsctl_by_client("default", case.client)[key] == row
    assert later.xdsctl_by_resource("default", *key)[case.client] == row
    assert later.page_of_client(case.client)[key].says(row)
    assert later.page_of_resource("default", *key)[case.client].says(row)
    status = later.csds()[case.client, *key]
    assert (status.state, status.details) == ("SYNCED", "")
    assert (said["answer"], said["rungs"][-1]["text"]) == ("yes", case.words)
    assert (typed.status, case.words in typed.out) == (DONE, True)


def test_change__acknowledged_and_not_in_use_by_some__all_doors_count_the_same_clients(
    world: World, later: Doors
) -> None:
    revisions = world.parley.call("GET", "/environments/default/resources/listener/odd-api/revisions").body["results"]
    change = revisions[0]["change"]

    found = world.parley.call("GET", f"/changes/{change}").body
    status = world.xdsctl("rollout", "status", change, "--spread").out
    page = html.unescape(world.console.open(f"/changes/{change}").decode())

    said = [
        f"{len(clients)} clients took {word} '{name}' and did not ask for {lacks}."
        for word, name, lacks in (
            ("cluster", "pay", "endpoint 'pay'"),
            ("listener", "api", "route 'r'"),
            ("listener", "odd-api", "route 'odd-route'"),
        )
        for clients in [[row for row in later.rest_by_resource("default", word, name).values() if row.message]]
    ]
    assert [each["message"] for each in found["not_in_use"] if each["message"] in said] == said
    assert found["counts"]["not_in_use"] == 4
    assert [each for each in said if f"not in use {each}" not in status or each not in page] == []
    assert "spread   " in status

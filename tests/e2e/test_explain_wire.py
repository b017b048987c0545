"""Explain, held against the wire: in each of twelve situations a real client does the thing, what it was sent and holds
is looked at, and Explain says the same, over REST, by xdsctl and on its page.
"""

import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.console import Console
from tests.support.data_planes import DataPlane, DataPlanes, Held, data_planes
from tests.support.manifests import cluster, route
from tests.support.stack import Parley, readiness, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import DONE, NO, UNDECIDED, Said, Xdsctl, xdsctl_for
from xdsclient import Variant
from xdscore.resource_types import CLUSTER, ROUTE

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("explain_wire")]

PASSWORD = "a long password"
EXITS = {"yes": DONE, "no": NO, "unknown": UNDECIDED}
SAYS = "refused by a drill, with these words"


@dataclass(frozen=True)
class Situation:
    """`client` asks for `name`. On the wire: the state of its cache, and words of what it was sent or itself said; the
    state is empty where it holds nothing of the name. Then Explain's answer, its code, and words of its sentence.
    """

    client: str
    name: str
    state: str
    words: str
    answer: str
    code: str
    sentence: str
    type: str = "cluster"


SITUATIONS = {
    "served": Situation(
        "edge", "served", "acked", "",
        "yes", "", "Cluster 'served' is served in 'default', version ",
    ),
    "denied": Situation(
        "edge", "denied", "received_error", "PERMISSION_DENIED [XDS2103] This client may not read ",
        "no", "XDS2103", " denies Cluster 'denied'.",
    ),
    "hidden": Situation(
        "edge", "hidden", "received_error", "NOT_FOUND [XDS2101] Cluster 'hidden' is not published in 'default'.",
        "no", "XDS2101", " hides Cluster 'hidden' from these clients",
    ),
    "missing with near names": Situation(
        "edge", "servd", "received_error", "NOT_FOUND [XDS2101] Cluster 'servd' is not published in 'default'.",
        "no", "XDS2101", "Nobody has published Cluster 'servd' in 'default'. Closest: 'served'",
    ),
    "deleted": Situation(
        "edge", "deleted", "received_error", "NOT_FOUND [XDS2102] Cluster 'deleted' was removed from 'default'.",
        "no", "XDS2102", "Cluster 'deleted' was removed from 'default' by token:admin.token at ",
    ),
    "withheld by a finding": Situation(
        "edge", "withheld", "received_error", "INTERNAL [XDS2106] RouteConfiguration 'withheld' is withheld: ",
        "no", "XDS2106", "RouteConfiguration 'withheld' is withheld: XDS2002: ", "route",
    ),
    "quarantined": Situation(
        "late", "quarantined", "received_error", "INTERNAL [XDS2106] Cluster 'quarantined' is withheld: ",
        "no", "XDS2106", "Cluster 'quarantined' is withheld: XDS5001",
    ),
    "never subscribed": Situation(
        "late", "served", "", "",
        "no", "", "Connected, but it does not ask for cluster 'served'. Closest that it asks for: 'serve'.",
    ),
    "refused": Situation(
        "refuser", "refused", "nacked", SAYS,
        "no", "", SAYS,
    ),
    "disconnected": Situation(
        "gone", "served", "acked", "",
        "unknown", "", "It has no open stream since ",
    ),
    "of another environment": Situation(
        "prod-1", "served", "received_error", "NOT_FOUND [XDS2101] Cluster 'served' is not published in 'prod'.",
        "no", "", "This client belongs to 'prod', not to 'default'.",
    ),
    "not decidable": Situation(
        "canary", "for-some", "received_error", "PERMISSION_DENIED [XDS2103] This client may not read ",
        "unknown", "", " speaks of 'canaries', which look at metadata that is not kept of this client.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """A Parley in which all of it has happened, and what each client holds."""

    parley: Parley
    held: dict[str, dict[tuple[str, str], Held]]
    console: Console
    xdsctl: Xdsctl


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("explain")
    with (
        running_up(folder / "home", {"PARLEY_ADMIN_PASSWORD": PASSWORD}) as parley,
        data_planes(f"127.0.0.1:{parley.ads_port}") as planes,
    ):
        _publish(parley)
        held = _happen(parley, planes)
        yield World(parley, held, Console(parley, PASSWORD), xdsctl_for(parley, folder))


def _publish(parley: Parley) -> None:
    _written(parley, "/environments", {"key": "prod", "selectors": [{"node_id": "prod-*"}], "default_effect": "allow"})
    canaries = {"key": "canaries", "matchers": [{"metadata": {"tier": "canary"}}], "trust": "declared"}
    _written(parley, "/environments/default/client-groups", canaries)
    for rule in (
        {"pattern": "denied", "effect": "deny", "message": "ask us"},
        {"pattern": "hidden", "effect": "hide"},
        {"pattern": "for-some", "effect": "deny", "client_groups": ["canaries"]},
    ):
        _written(parley, "/environments/default/rules", {"types": ["cluster"], **rule})
    names = ("served", "denied", "hidden", "deleted", "quarantined", "refused", "for-some")
    parley.apply_and_publish(*map(cluster, names), route("withheld", "no-such-cluster"))


def _written(parley: Parley, path: str, body: object) -> None:
    answer = parley.call("POST", path, body)
    assert answer.status == 201, answer


def _happen(parley: Parley, planes: DataPlanes) -> dict[str, dict[tuple[str, str], Held]]:
    """Let every client do what its situation says; what each of them holds in the end."""
    edge = planes.start("edge", CLUSTER, ROUTE)
    edge.ask(CLUSTER, "served", "denied", "hidden", "servd", "deleted", "for-some")
    edge.ask(ROUTE, "withheld")
    refuser = planes.start("refuser", CLUSTER, refuses={"refused": SAYS, "quarantined": SAYS}, variant=Variant.DELTA)
    refuser.ask(CLUSTER, "refused", "quarantined", "served")
    gone = planes.start("gone", CLUSTER)
    gone.ask(CLUSTER, "served")
    prod = planes.start("prod-1", CLUSTER)
    prod.ask(CLUSTER, "served")
    canary = planes.start("canary", CLUSTER, metadata={"tier": "canary"})
    canary.ask(CLUSTER, "for-some")
    held = {"gone": _decided(gone)}
    gone.leave()
    assert _decided(edge)["cluster", "deleted"].state == "acked"
    parley.apply_and_publish(delete=[{"type": "cluster", "name": "deleted"}], losing=1)
    _quarantine(parley, "quarantined")
    # Whoever starts now is told of the quarantine, and never asks for what is published.
    late = planes.start("late", CLUSTER, variant=Variant.DELTA)
    late.ask(CLUSTER, "quarantined", "serve")
    eventually(lambda: edge.held()["cluster", "deleted"].state, lambda state: state != "acked", within_s=10)
    clients = {"edge": edge, "refuser": refuser, "prod-1": prod, "canary": canary, "late": late}
    return held | {name: _decided(plane) for name, plane in clients.items()}


def _decided(plane: DataPlane) -> dict[tuple[str, str], Held]:
    """What the client holds once it was told something of everything that it asks for."""
    return eventually(plane.held, lambda held: all(each.state != "requested" for each in held.values()), within_s=20)


def _quarantine(parley: Parley, name: str) -> None:
    """As an operator does, who looks at the incident."""

    def found() -> dict[str, Any]:
        incidents = parley.call("GET", "/incidents").body["results"]
        return next((each for each in incidents if each["name"] == name), {})

    incident = eventually(found, within_s=10)
    before = _epoch(parley)
    answer = parley.call("POST", f"/incidents/{incident['id']}/quarantine", {"reason": "nobody can use it"})
    assert answer.status == 202, answer
    published = eventually(lambda: _epoch(parley), lambda epoch: epoch > before, within_s=10)
    # A client that started between publishing and serving would be given it, and rightly be said to have a copy.
    eventually(lambda: _served_epoch(parley), lambda epoch: epoch >= published, within_s=10)


def _served_epoch(parley: Parley) -> int:
    """The newest epoch that ADS serves."""
    _, body = readiness(parley.metrics_ports[0])
    return int(json.loads(body)["environments"]["default"]["epoch"])


def _epoch(parley: Parley) -> int:
    return int(parley.call("GET", "/environments/default/snapshots").body["results"][0]["epoch"])


@pytest.mark.parametrize("situation", SITUATIONS)
def test_explain__situation_on_the_wire__is_told_as_it_is_by_rest_xdsctl_and_page(world: World, situation: str) -> None:
    case = SITUATIONS[situation]
    query = f"type={case.type}&name={case.name}&client={case.client}"

    on_wire = world.held[case.client].get((case.type, case.name), Held("", ""))

    def told() -> tuple[dict[str, Any], Said]:
        """What REST says, and xdsctl after it."""
        said = world.parley.call("GET", f"/explain?environment=default&{query}").body
        return said, world.xdsctl("explain", case.client, case.type, case.name)

    # What was acknowledged meanwhile is written a moment later, perhaps between the two questions.
    said, typed = eventually(
        told,
        lambda both: (
            both[0].get("answer") == case.answer
            and case.sentence in both[0].get("sentence", "")
            and all(rung["text"] in both[1].out for rung in both[0]["rungs"])
        ),
        within_s=15,
    )
    page = world.console.open(f"/x?e=default&t={case.type}&n={case.name}&c={case.client}").decode()

    assert on_wire.state == case.state
    assert case.words in on_wire.text
    assert said["code"] == case.code
    if case.code:
        assert said["told"] == on_wire.text
    assert typed.status == EXITS[case.answer]
    assert said["sentence"] in html.unescape(page)


def test_explain__what_cannot_be_decided__is_so_on_the_wire(world: World) -> None:
    """Two clients that nothing told apart but metadata, which nobody keeps, are told different things."""
    assert world.held["edge"]["cluster", "for-some"].state == "acked"
    assert world.held["canary"]["cluster", "for-some"].state == "received_error"

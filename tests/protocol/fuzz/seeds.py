"""The fuzzer's first inputs: what clients really send, so that it need not find the protocol out by itself.

`python -m tests.protocol.fuzz.seeds` writes them into the corpus.
"""

from pathlib import Path

from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.message import Message

from tests.protocol.fuzz.target import PUBLISH, REQUEST, WAIT
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE

CORPUS = Path(__file__).parent / "corpus"
UNKNOWN = "type.googleapis.com/example.Unknown"
NODE = {"id": "n", "cluster": "c", "metadata": {"k": "v"}}

Step = tuple[int, bytes]


def sotw(kind: str, *names: str, nonce: str = "", node: bool = False, nack: str = "", locator: str = "") -> Step:
    message = discovery_pb2.DiscoveryRequest(type_url=kind, resource_names=names, response_nonce=nonce)
    if nack:
        message.error_detail.message = nack
    if locator:
        message.resource_locators.add(name=locator)
    return _request(message, node=node)


def delta(
    kind: str,
    *names: str,
    gone: tuple[str, ...] = (),
    has: dict[str, str] | None = None,
    nonce: str = "",
    node: bool = False,
    nack: str = "",
) -> Step:
    message = discovery_pb2.DeltaDiscoveryRequest(
        type_url=kind,
        resource_names_subscribe=names,
        resource_names_unsubscribe=gone,
        initial_resource_versions=has or {},
        response_nonce=nonce,
    )
    if nack:
        message.error_detail.message = nack
    return _request(message, node=node)


def _request(message: Message, *, node: bool) -> Step:
    if node:
        message.node.id, message.node.cluster = "n", "c"  # type: ignore[attr-defined]
        message.node.metadata.update({"k": "v"})  # type: ignore[attr-defined]
    return REQUEST, message.SerializeToString(deterministic=True)


def written(first: int, *steps: Step) -> bytes:
    return bytes([first]) + b"".join(bytes([action]) + len(data).to_bytes(2, "little") + data for action, data in steps)


ON_ADS, CDS_ONLY = 0, 2 * 2  # places in target.SERVICES, doubled: the lowest bit is the variant
DELTA = 1
AGAIN: Step = (PUBLISH, b"")
LATER: Step = (WAIT, b"")

SEEDS = {
    "sotw-wildcard": written(
        ON_ADS, sotw(CLUSTER.url, node=True), sotw(CLUSTER.url, nonce="1"), AGAIN, sotw(CLUSTER.url, nonce="2")
    ),
    "sotw-names": written(
        ON_ADS,
        sotw(ENDPOINT.url, "a", "b", "", "*", node=True),
        sotw(ENDPOINT.url, "a", nonce="1"),
        sotw(ENDPOINT.url, "a", nonce="1"),
        AGAIN,
        sotw(ENDPOINT.url, "b", nonce="7"),
        sotw(ENDPOINT.url, nonce="2"),
    ),
    "sotw-nack": written(
        ON_ADS,
        sotw(CLUSTER.url, "*", "a", node=True),
        sotw(CLUSTER.url, "*", "a", nonce="1", nack="no"),
        sotw(CLUSTER.url, "*", "a", nonce="2", nack="Error adding/updating cluster(s) a: bad"),
        AGAIN,
        LATER,
        sotw(CLUSTER.url, "*", nonce="3"),
    ),
    "delta-wildcard": written(
        DELTA,
        delta(CLUSTER.url, node=True, has={"a": "x", "old": "y"}),
        delta(CLUSTER.url, nonce="1"),
        AGAIN,
        delta(CLUSTER.url, "*", gone=("a",), nonce="2", nack="no"),
        delta(CLUSTER.url, gone=("*",)),
    ),
    "delta-names": written(
        DELTA,
        delta(ENDPOINT.url, "a", "b", "none", node=True),
        delta(ENDPOINT.url, "a", gone=("b",), nonce="1"),
        AGAIN,
        delta(ENDPOINT.url, nonce="2", nack="malformed IP address: x"),
        LATER,
    ),
    "unknown-type": written(
        ON_ADS, sotw(UNKNOWN, "x", node=True), sotw(UNKNOWN, "x", "y", nonce="u1"), sotw("", "x"), sotw(CLUSTER.url)
    ),
    "xdstp": written(
        ON_ADS,
        sotw(CLUSTER.url, "xdstp://a/envoy.config.cluster.v3.Cluster/dir/*?z=1&b=2", node=True),
        sotw(CLUSTER.url, "xdstp:///envoy.config.route.v3.RouteConfiguration/%zz#entry=a", nonce="1"),
        sotw(ROUTE.url, locator="a"),
    ),
    "single-type": written(CDS_ONLY, sotw("", node=True), sotw(CLUSTER.url, nonce="1"), sotw(ROUTE.url, "x")),
    "garbage": written(ON_ADS, (REQUEST, b"\xff\xff\xff"), sotw(CLUSTER.url, "a"), sotw(CLUSTER.url, node=True), AGAIN),
}


def main() -> None:
    CORPUS.mkdir(exist_ok=True)
    for name, data in SEEDS.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()

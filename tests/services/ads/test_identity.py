"""Who is let in by their certificate, and which nodes a stream may have (reliability threats 2 and 3)."""

import pytest

from adsserver.config import AdsConfigError, TlsFiles, host_and_port
from adsserver.identity.identification import NodeError, UnauthenticatedError, first_node, same_node, spiffe_identity
from adsserver.wire.discovery import NodeFacts
from tests.support.ads import config
from xdscore.auth_modes import AuthMode

DOMAINS = frozenset({"td.example"})


@pytest.mark.parametrize("value", ["spiffe://td.example/ns/prod/sa/Pay_1.x", "spiffe://td.example/a"])
def test_spiffe_identity__single_id_of_our_domain__is_the_identity(value: str) -> None:
    assert spiffe_identity({"peer_spiffe_id": [value.encode()]}, DOMAINS) == value


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"peer_spiffe_id": []},
        {"peer_spiffe_id": [b"spiffe://td.example/a", b"spiffe://td.example/b"]},
        # What a certificate with two SPIFFE URIs looks like: only peer_uri is set.
        {"peer_uri": [b"spiffe://td.example/a", b"spiffe://td.example/b"]},
        {"x509_common_name": [b"spiffe://td.example/a"]},
        {"peer_spiffe_id": [b"spiffe://td.example.evil/a"]},
        {"peer_spiffe_id": [b"spiffe://evil.td.example/a"]},
        {"peer_spiffe_id": [b"spiffe://TD.example/a"]},
        {"peer_spiffe_id": [b"SPIFFE://td.example/a"]},
        {"peer_spiffe_id": [b"https://td.example/a"]},
        {"peer_spiffe_id": [b"spiffe://td.example"]},
        {"peer_spiffe_id": [b"spiffe://td.example/"]},
        {"peer_spiffe_id": [b"spiffe://td.example/a/"]},
        {"peer_spiffe_id": [b"spiffe://td.example//a"]},
        {"peer_spiffe_id": [b"spiffe://td.example/a/../b"]},
        {"peer_spiffe_id": [b"spiffe://td.example/./a"]},
        {"peer_spiffe_id": [b"spiffe://td.example/%61"]},
        {"peer_spiffe_id": [b"spiffe://td.example/a?b"]},
        {"peer_spiffe_id": [b"spiffe://td.example/a#b"]},
        {"peer_spiffe_id": [b"spiffe://td.example:443/a"]},
        {"peer_spiffe_id": [b"spiffe://user@td.example/a"]},
        {"peer_spiffe_id": ["spiffe://td.example/é".encode()]},
        {"peer_spiffe_id": [b"spiffe://td.example/" + b"a" * 2048]},
        {"peer_spiffe_id": [b"td.example/a"]},
        {"peer_spiffe_id": [b"spiffe://"]},
        {"peer_spiffe_id": [b""]},
    ],
)
def test_spiffe_identity__anything_else__is_refused(properties: dict[str, list[bytes]]) -> None:
    with pytest.raises(UnauthenticatedError):
        spiffe_identity(properties, DOMAINS)


def test_spiffe_identity__no_trust_domain__nobody_is_let_in() -> None:
    with pytest.raises(UnauthenticatedError):
        spiffe_identity({"peer_spiffe_id": [b"spiffe://td.example/a"]}, frozenset())


@pytest.mark.parametrize("node", [NodeFacts("a" * 1024), NodeFacts("sidecar~10.0.0.1~pod.ns~x"), NodeFacts("é")])
def test_first_node__usable_id__is_taken(node: NodeFacts) -> None:
    assert first_node(node) is node


@pytest.mark.parametrize("node", [None, NodeFacts(""), NodeFacts("a" * 1025), NodeFacts("a\nb"), NodeFacts("a\u202eb")])
def test_first_node__unusable_id__is_refused(node: NodeFacts | None) -> None:
    with pytest.raises(NodeError):
        first_node(node)


@pytest.mark.parametrize("later", [None, NodeFacts("", ""), NodeFacts("n", "c"), NodeFacts("n", "c", {"k": "v"})])
def test_same_node__nothing_that_names_the_client_changed__goes_on(later: NodeFacts | None) -> None:
    same_node(NodeFacts("n", "c"), later)


@pytest.mark.parametrize("later", [NodeFacts("m", "c"), NodeFacts("n", "d"), NodeFacts("n", ""), NodeFacts("", "c")])
def test_same_node__id_or_cluster_changed__is_refused(later: NodeFacts) -> None:
    with pytest.raises(NodeError):
        same_node(NodeFacts("n", "c"), later)


def test_config__mtls_without_what_it_needs__is_refused(tmp_path: object) -> None:
    files = TlsFiles(config().home, config().home, config().home)

    with pytest.raises(AdsConfigError, match="PARLEY_ADS_TLS_CERT"):
        config(auth=AuthMode.MTLS, trust_domains=DOMAINS).check()
    with pytest.raises(AdsConfigError, match="PARLEY_ADS_TLS_CERT"):
        config(auth=AuthMode.MTLS, trust_domains=DOMAINS, tls=TlsFiles(files.key, files.key)).check()
    with pytest.raises(AdsConfigError, match="PARLEY_ADS_TRUST_DOMAINS"):
        config(auth=AuthMode.MTLS, tls=files).check()
    config(auth=AuthMode.MTLS, tls=files, trust_domains=DOMAINS).check()


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:18000", ("127.0.0.1", 18000)), ("[::1]:0", ("::1", 0)), ("localhost:65535", ("localhost", 65535))],
)
def test_host_and_port__address__is_read(address: str, expected: tuple[str, int]) -> None:
    assert host_and_port(address) == expected


@pytest.mark.parametrize("address", ["", "18000", "localhost", "localhost:", ":18000", "a:65536", "a:-1", "a:٣", "a:b"])
def test_host_and_port__no_address__is_refused(address: str) -> None:
    with pytest.raises(AdsConfigError, match="host:port"):
        host_and_port(address)

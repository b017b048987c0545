"""Which filter chain takes a connection: each criterion in its order, and what a request does not say."""

from typing import Any

import pytest
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2  # noqa: F401 - read from JSON
from google.protobuf import json_format

from xdscore.routing.chains import chosen_chain, port_of
from xdscore.routing.seen import seen_of
from xdscore.routing.values import Place, Request

PLACE = Place(("listener", "edge"))
INSPECTOR = {"@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
TLS = {"transport_protocol": "tls"}


def chosen(authority: str, *matches: dict[str, Any], scheme: str = "https", address: str = "0.0.0.0") -> Any:  # noqa: S104
    chains = [{"name": f"c{index}", "filter_chain_match": match} for index, match in enumerate(matches)]
    fields = {
        "address": {"socket_address": {"address": address, "port_value": 443}},
        "filter_chains": chains,
        "listener_filters": [{"name": "tls", "typed_config": INSPECTOR}],
    }
    listener = json_format.ParseDict(fields, Listener())
    return chosen_chain(listener, seen_of(Request(authority, scheme=scheme)), 443, PLACE)


@pytest.mark.parametrize(
    ("authority", "scheme", "index"),
    [
        ("shop.example", "https", 0),
        ("SHOP.example:443", "https", 0),
        ("a.shop.example", "https", 1),
        ("a.b.shop.example", "https", 1),
        ("b.example", "https", 2),
        ("elsewhere", "https", 3),
        ("10.0.0.1", "https", 3),
        ("shop.example", "http", 4),
    ],
)
def test_chain__by_server_name__the_longest_that_fits(authority: str, scheme: str, index: int) -> None:
    found = chosen(
        authority,
        {"server_names": ["shop.example"]},
        {"server_names": ["*.shop.example"]},
        {"server_names": ["*.example"]},
        TLS,
        {"transport_protocol": "raw_buffer"},
        scheme=scheme,
    )

    assert (found.index, found.doubt) == (index, None)
    assert len(found.lost) == 4


def test_chain__for_the_very_name_that_wants_more__keeps_all_others_from_it() -> None:
    found = chosen("shop.example", {"server_names": ["shop.example"], "transport_protocol": "raw_buffer"}, TLS)

    assert found.index is None
    assert [lost.said for lost in found.lost] == [
        "wants no server_names of its own, and another chain is for the very one of this connection",
        "wants transport_protocol 'raw_buffer'; the connection has 'tls'",
    ]


def test_chain__by_port_and_address__the_most_specific() -> None:
    wide, narrow = ({"prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": size}]} for size in (8, 24))

    assert chosen("x", {"destination_port": 444}, {"destination_port": 443}, {}).index == 1
    assert chosen("x", wide, narrow, {}, address="10.0.0.7").index == 1
    assert chosen("x", wide, narrow, {}, address="10.1.0.7").index == 0
    assert chosen("x", wide, narrow, {}, address="127.0.0.1").index == 2


@pytest.mark.parametrize(
    "match",
    [
        {"application_protocols": ["h2"]},
        {"source_type": "EXTERNAL"},
        {"source_ports": [1]},
        {"source_prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
        {"direct_source_prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
        {"prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
    ],
)
def test_chain__by_what_a_request_does_not_say__is_in_doubt(match: dict[str, Any]) -> None:
    found = chosen("shop.example", match, {})

    assert found.doubt == PLACE.at("filter_chains", 0, "filter_chain_match", next(iter(match)))


@pytest.mark.parametrize(
    ("authority", "scheme", "port"),
    [("a", "http", 80), ("a", "https", 443), ("a:81", "https", 81), ("[::1]:8", "http", 8), ("[::1]", "http", 80)],
)
def test_port__of_an_authority__else_of_its_scheme(authority: str, scheme: str, port: int) -> None:
    assert port_of(authority, scheme) == port

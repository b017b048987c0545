"""What listeners, scopes and virtual hosts want to themselves."""

import json

import pytest

from tests.support.manifests import api_listener, listener, parsed, route
from xdscore.schema import Media, Refused, parse, read_manifests

TYPE = "type.googleapis.com/"
SCOPE = "envoy.config.route.v3.ScopedRouteConfiguration"


def with_address(address: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "@type": TYPE + "envoy.config.listener.v3.Listener",
        "name": "l",
        "address": address,
        "default_filter_chain": {},
        **more,
    }


def scope(name: str, *fragments: str) -> dict[str, object]:
    key = {"fragments": [{"string_key": fragment} for fragment in fragments]}
    return {"@type": TYPE + SCOPE, "name": name, "route_configuration_name": "r", "key": key}


@pytest.mark.parametrize(
    ("tree", "claims"),
    [
        (listener("l", "r", 80), ("address tcp 127.0.0.1 port 80",)),
        (listener("l", "r", 0), ()),
        (api_listener("l", "r"), ()),
        (with_address({"socket_address": {"address": "::1", "port_value": 1}}, bind_to_port=False), ()),
        (with_address({"pipe": {"path": "/run/l.sock"}}), ("pipe /run/l.sock",)),
        (
            with_address(
                {"socket_address": {"address": "0.0.0.0", "port_value": 53, "protocol": "UDP"}},  # noqa: S104
                udp_listener_config={},
                additional_addresses=[
                    {"address": {"socket_address": {"address": "::", "port_value": 53, "protocol": "UDP"}}}
                ],
            ),
            ("address udp 0.0.0.0 port 53", "address udp :: port 53"),
        ),
        (route("r", "c"), ()),
        (scope("s", "a b", "c,d"), ("scope key a%20b, c%2Cd",)),
        (scope(f"xdstp://a/{SCOPE}/eu/s?x=y", "k"), (f"scope key k of xdstp://a/{SCOPE}/eu/*?x=y",)),
    ],
)
def test_claims__of_a_resource__are_what_no_other_can_have(tree: dict[str, object], claims: tuple[str, ...]) -> None:
    assert parsed(tree).claims == claims


def test_claims__virtual_host_on_demand__are_the_domains_of_its_route() -> None:
    host = {
        "@type": TYPE + "envoy.config.route.v3.VirtualHost",
        "name": "shop/eu",
        "domains": ["EU.example"],
    }
    inline = route("shop", "c", domain="eu.example") | {
        "vhds": {"config_source": {"ads": {}, "resource_api_version": "V3"}}
    }

    assert parsed(host).claims == parsed(inline).claims == ("domain eu.example of route shop",)


def test_parse__domain_in_two_virtual_hosts__is_refused_at_its_place() -> None:
    tree = route("shop", "c", domain="Shop.example")
    hosts = tree["virtual_hosts"]
    assert isinstance(hosts, list)
    tree["virtual_hosts"] = [*hosts, {**hosts[0], "name": "other", "domains": ["a.example", "shop.EXAMPLE"]}]
    manifests, _ = read_manifests(json.dumps(tree).encode(), Media.JSON)

    refused = parse(manifests[0])

    assert isinstance(refused, Refused)
    (finding,) = refused.findings
    assert (finding.code, finding.pointer) == ("XDS2005", "/virtual_hosts/1/domains/1")
    assert "'shop.example' stands in this route configuration already, at /virtual_hosts/0/domains/0" in finding.detail

"""Bootstraps as gRPC spells them."""

import json
from pathlib import Path

import pytest

from xdsclient.bootstrap import (
    Authority,
    Bootstrap,
    BootstrapError,
    FromEnvironment,
    Insecure,
    Locality,
    Node,
    Server,
    Tls,
    data_error_handling,
)
from xdsclient.engine.values import ServerFeature

PLAIN = {"xds_servers": [{"server_uri": "ads:1", "channel_creds": [{"type": "insecure"}]}], "node": {"id": "n"}}


def text(**changes: object) -> str:
    return json.dumps(PLAIN | changes)


def server(**changes: object) -> str:
    return text(xds_servers=[{"server_uri": "ads:1", "channel_creds": [{"type": "insecure"}]} | changes])


def test_bootstrap__everything_given__is_read() -> None:
    bootstrap = Bootstrap.parse(
        text(
            xds_servers=[
                {
                    "server_uri": "ads:1",
                    "channel_creds": [
                        {"type": "tls", "config": {"ca_certificate_file": "ca", "certificate_file": "c"}
                         | {"private_key_file": "k"}}
                    ],
                    "call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "token"}}],
                    "server_features": ["xds_v3", "fail_on_data_errors", "resource_timer_is_transient_error"],
                },
                {"server_uri": "ads:2", "channel_creds": [{"type": "insecure"}]},
            ],
            node={"id": "n", "cluster": "c", "locality": {"region": "r", "zone": "z"}, "metadata": {"team": "pay"}},
            authorities={"other": {"client_listener_resource_name_template": "xdstp://other/x/%s"}},
            client_default_listener_resource_name_template="%s.internal",
        )
    )  # fmt: skip

    features = frozenset({ServerFeature.FAIL_ON_DATA_ERRORS, ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR})
    assert bootstrap.servers == (
        Server("ads:1", Tls("ca", "c", "k"), "token", features),
        Server("ads:2", Insecure()),
    )
    assert bootstrap.node == Node("n", "c", Locality("r", "z"), {"team": "pay"})
    assert bootstrap.authorities == {"other": Authority((), "xdstp://other/x/%s")}
    assert bootstrap.client_listener_template == "%s.internal"
    assert bootstrap.notes == ()


def test_bootstrap__several_mistakes__are_told_together_with_their_places() -> None:
    with pytest.raises(BootstrapError) as caught:
        Bootstrap.parse(
            text(
                xds_servers=[{"channel_creds": [{"type": "google_default"}]}],
                node={"id": 7},
                authorities={"a": {"client_listener_resource_name_template": "xdstp://b/%s", "xds_servers": {}}},
            )
        )

    assert caught.value.problems == (
        "/xds_servers/0/server_uri must be given",
        "/xds_servers/0/channel_creds must offer 'tls' or 'insecure'",
        "/node/id must be a string",
        "/authorities/a/client_listener_resource_name_template must start with xdstp://a/",
        "/authorities/a/xds_servers must be a list",
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "/ must be an object"),
        ("{}", "/xds_servers must name at least one server"),
        (server(channel_creds=[{"type": "tls", "config": {"certificate_file": "c"}}]), "must be given together"),
        (server(call_creds=[{"type": "jwt_token_file"}]), "jwt_token_file must be given"),
    ],
    ids=["no json", "deep", "list", "empty", "half a pair", "no token file"],
)
def test_bootstrap__that_cannot_be_used__says_why(given: str, problem: str) -> None:
    with pytest.raises(BootstrapError, match=problem):
        Bootstrap.parse(given)


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (
            server(server_features=["resource_timer_is_transient_failure"]),
            (
                "ads:1: 'resource_timer_is_transient_failure' is read by no client; "
                "write 'resource_timer_is_transient_error'"
            ),
        ),
        (
            server(server_features=["ignore_resource_deletion"]),
            "ads:1: 'ignore_resource_deletion' is deprecated by gRFC A88 and has no effect where A88 is on",
        ),
        (server(server_features=["fly"]), "ads:1: the server feature 'fly' is unknown and ignored"),
        (
            server(channel_creds=[{"type": "google_default"}, {"type": "insecure"}]),
            "ads:1: channel_creds of type 'google_default' are not supported",
        ),
        (server(call_creds=[{"type": "oauth"}]), "ads:1: call_creds of type 'oauth' are not supported"),
    ],
    ids=["misspelt", "deprecated", "unknown", "credentials", "call credentials"],
)
def test_bootstrap__what_is_ignored__is_noted(given: str, note: str) -> None:
    assert Bootstrap.parse(given).notes == (note,)


def test_load__from_the_environment__the_file_goes_first(tmp_path: Path) -> None:
    """gRFC A27: GRPC_XDS_BOOTSTRAP, then GRPC_XDS_BOOTSTRAP_CONFIG."""
    path = tmp_path / "bootstrap.json"
    path.write_text(text(node={"id": "file"}))
    inline = {"GRPC_XDS_BOOTSTRAP_CONFIG": text(node={"id": "inline"})}

    both = Bootstrap.load(FromEnvironment(inline | {"GRPC_XDS_BOOTSTRAP": str(path)}))

    assert both.node.id == Bootstrap.load(path).node.id == "file"
    assert Bootstrap.load(FromEnvironment(inline)).node.id == "inline"


@pytest.mark.parametrize(
    ("variables", "problem"),
    [({}, "neither GRPC_XDS_BOOTSTRAP nor"), ({"GRPC_XDS_BOOTSTRAP": "/no/such/file"}, "cannot be read")],
    ids=["nothing", "no file"],
)
def test_load__nothing_to_read__says_what_is_missing(variables: dict[str, str], problem: str) -> None:
    with pytest.raises(BootstrapError, match=problem):
        Bootstrap.load(FromEnvironment(variables))


@pytest.mark.parametrize(
    ("value", "on"), [("true", True), (" TRUE ", True), ("1", False), ("false", False), ("", False)]
)
def test_guard__of_a88__is_off_unless_it_says_true(value: str, on: bool) -> None:
    assert data_error_handling({"GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": value}) is on
    assert data_error_handling({}) is False

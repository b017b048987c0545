"""What is made of an Envoy's dump and of a client's status: every state, and no content."""

from typing import Any

import pytest
from envoy.admin.v3 import config_dump_shared_pb2
from envoy.service.status.v3 import csds_pb2

from tests.support.manifests import TYPE, cluster, endpoints, parsed
from xdscore.resource_types import CLUSTER
from xdscore.said import NO_HOSTS, Said, SaidSource, SaidState
from xdscore.snapshot import content_version
from xdsctl.client_status import word_of_status
from xdsctl.envoy_dump import MAX_ERROR_CHARS, word_of_dump
from xdsctl.exits import CommandError, Exit

ADMIN = f"{TYPE}envoy.admin.v3."
PAY = parsed(cluster("pay"))
VERSION = content_version(PAY.content_hash)
API_LISTENER: dict[str, object] = {"@type": f"{TYPE}envoy.config.listener.v3.Listener", "name": "edge"}
SECRET_BYTES = "c2VjcmV0"


def dump(*sections: dict[str, Any]) -> dict[str, Any]:
    bootstrap = {"@type": f"{ADMIN}BootstrapConfigDump", "bootstrap": {"node": {"id": "edge-1"}}}
    return {"configs": [bootstrap, *sections]}


def names(section: str, **lists: object) -> tuple[Said, ...]:
    return word_of_dump(dump({"@type": f"{ADMIN}{section}", **lists})).names


def state_of(key: str, **more: object) -> tuple[Said, ...]:
    place = {"version_info": "v1", "listener": API_LISTENER}
    return names("ListenersConfigDump", dynamic_listeners=[{"name": "edge", key: place, **more}])


def test_dump__clusters__active_warming_and_static_with_the_version_parley_gives_them() -> None:
    entry = {"version_info": "w1", "cluster": cluster("pay")}

    found = names(
        "ClustersConfigDump",
        dynamic_active_clusters=[entry],
        dynamic_warming_clusters=[entry],
        static_clusters=[{"cluster": cluster("pay")}],
    )

    assert [each.state for each in found] == [SaidState.ACKED, SaidState.WARMING, SaidState.STATIC]
    assert found[0] == Said("cluster", "pay", SaidState.ACKED, held=True, version=VERSION, version_info="w1")


def test_dump__listeners__in_use_warming_leaving_and_refused() -> None:
    refused = {"details": "no such filter" + "x" * 9_000, "version_info": "w2"}

    assert [each.state for each in state_of("active_state")] == [SaidState.ACKED]
    assert [each.state for each in state_of("warming_state")] == [SaidState.WARMING]
    assert [each.state for each in state_of("draining_state")] == [SaidState.DRAINING]
    [both] = state_of("active_state", error_state=refused)
    assert (both.state, both.held, both.error[:14]) == (SaidState.NACKED, True, "no such filter")
    assert len(both.error) == MAX_ERROR_CHARS
    [alone] = names("ListenersConfigDump", dynamic_listeners=[{"name": "edge", "error_state": refused}])
    assert (alone.name, alone.state, alone.held) == ("edge", SaidState.NACKED, False)


def test_dump__secrets__that_they_are_there_and_nothing_else() -> None:
    held = {"name": "key", "tls_certificate": {"private_key": {"inline_bytes": SECRET_BYTES}}}
    entry = {"name": "key", "version_info": "w1", "secret": {"@type": f"{TYPE}x.Secret", **held}}

    found = names("SecretsConfigDump", dynamic_active_secrets=[entry], dynamic_warming_secrets=[{"name": "late"}])

    assert found[0] == Said("secret", "key", SaidState.ACKED, held=True, version_info="w1")
    assert (found[1].name, found[1].state, found[1].held) == ("late", SaidState.REQUESTED, False)
    assert SECRET_BYTES not in str(found)


def test_dump__endpoints_routes_scopes_and_extensions__by_their_names() -> None:
    assignment = endpoints("pay", 9000)
    none = endpoints("static")
    found = names(
        "EndpointsConfigDump",
        dynamic_endpoint_configs=[{"endpoint_config": assignment}],
        static_endpoint_configs=[{"endpoint_config": none}],
    )
    scope = {"@type": f"{TYPE}envoy.config.route.v3.ScopedRouteConfiguration", "name": "s"}
    scopes = names("ScopedRoutesConfigDump", dynamic_scoped_route_configs=[{"scoped_route_configs": [scope]}])
    filters = [{"ecds_filter": {"@type": f"{TYPE}envoy.config.core.v3.TypedExtensionConfig", "name": "f"}}]

    assert [(each.name, each.endpoints == NO_HOSTS, each.version) for each in found] == [
        ("pay", False, ""),
        ("static", True, ""),
    ]
    assert [(each.type, each.name) for each in scopes] == [("scoped_route", "s")]
    assert [each.name for each in names("EcdsConfigDump", ecds_filters=filters)] == ["f"]


def test_dump__words_and_names_that_act__are_harmless_or_left_out() -> None:
    hostile = "no\x00such\x1b[2J\nfile"
    entries = [
        {"name": "edge", "error_state": {"details": hostile}},
        {"name": "ed\x00ge", "error_state": {"details": "x"}},
        {"name": "", "error_state": {"details": "x"}},
    ]

    [found] = names("ListenersConfigDump", dynamic_listeners=entries)

    assert found.error == "no\\u0000such\\u001b[2J\nfile"


def test_dump__sections_that_are_there__say_of_which_types_every_name_stands_in_it() -> None:
    word = word_of_dump(dump({"@type": f"{ADMIN}ClustersConfigDump"}, {"@type": f"{ADMIN}Other"}, {}))

    assert (word.source, word.node_id, word.types, word.names) == (
        SaidSource.ENVOY_ADMIN,
        "edge-1",
        frozenset({"cluster"}),
        (),
    )
    assert word_of_dump(dump(), node_id="other").node_id == "other"


@pytest.mark.parametrize("body", [None, [], "x", {}, {"configs": {}}])
def test_dump__that_is_none__no_answer(body: object) -> None:
    with pytest.raises(CommandError) as refused:
        word_of_dump(body)

    assert refused.value.exit_status is Exit.NO_ANSWER


def status(*entries: dict[str, Any], node_id: str = "me") -> Any:
    response = csds_pb2.ClientStatusResponse()
    config = response.config.add()
    config.node.id = node_id
    for each in entries:
        config.generic_xds_configs.add(**{"type_url": CLUSTER.url, "name": "pay", **each})
    return response


def test_status__of_a_client__states_versions_and_words() -> None:
    config = csds_pb2.ClientConfig.GenericXdsConfig().xds_config
    config.ParseFromString(PAY.any_bytes)
    error = config_dump_shared_pb2.UpdateFailureState(details="too blue", version_info="w2")
    response = status(
        {"client_status": 3, "xds_config": config, "version_info": "w1"},
        {"client_status": 4, "error_state": error},
        {"client_status": 77},
        {"type_url": f"{TYPE}x.Unknown"},
    )

    word = word_of_status(response)

    assert (word.source, word.node_id) == (SaidSource.CSDS, "me")
    assert word.names == (
        Said("cluster", "pay", SaidState.ACKED, held=True, version=VERSION, version_info="w1"),
        Said("cluster", "pay", SaidState.NACKED, error="too blue"),
        Said("cluster", "pay", SaidState.UNKNOWN),
    )


def test_status__of_several_clients_or_none__has_to_be_told_which() -> None:
    two = status({}, node_id="a")
    two.MergeFrom(status({}, {}, node_id="b"))

    for response in (two, csds_pb2.ClientStatusResponse()):
        with pytest.raises(CommandError) as refused:
            word_of_status(response)
        assert refused.value.exit_status is Exit.USAGE
        assert "--node-id" in refused.value.text
    assert len(word_of_status(two, node_id="b").names) == 2

"""Asks ADS what it serves, by a plain gRPC stream."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from xdscore.resource_types import CLUSTER

_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_PATIENCE_S = 3
_NOTHING: Mapping[str, str] = MappingProxyType({})
_Request: TypeAlias = discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest
_Response = TypeVar("_Response", discovery_pb2.DiscoveryResponse, discovery_pb2.DeltaDiscoveryResponse)


def served_clusters(ads_port: int) -> list[str]:
    """The names of the clusters that a new client with a wildcard is sent; empty while ADS does not answer."""
    return list(pushed_clusters(ads_port))


def pushed_clusters(ads_port: int, *, having: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    """The name and version of each cluster in the first response to a delta client with a wildcard that comes back with
    these; empty while ADS does not answer.
    """
    request = discovery_pb2.DeltaDiscoveryRequest(
        type_url=CLUSTER.url, resource_names_subscribe=["*"], initial_resource_versions=having
    )
    answer = _first(ads_port, "DeltaAggregatedResources", request, discovery_pb2.DeltaDiscoveryResponse)
    return {resource.name: resource.version for resource in answer.resources} if answer is not None else {}


def served_version(ads_port: int) -> str:
    """The version of the clusters that a new client with a wildcard is sent, which is a hash of them; empty while ADS
    does not answer.
    """
    request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url)
    answer = _first(ads_port, "StreamAggregatedResources", request, discovery_pb2.DiscoveryResponse)
    return str(answer.version_info) if answer is not None else ""


def _first(ads_port: int, method: str, request: _Request, response: type[_Response]) -> _Response | None:
    """The first response on a new stream; None while ADS does not answer."""
    request.node.id = "probe"
    with grpc.insecure_channel(f"127.0.0.1:{ads_port}") as channel:
        ask = channel.stream_stream(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        try:
            answer: _Response
            for answer in ask(iter([request]), timeout=_PATIENCE_S):
                return answer
        except grpc.RpcError:
            pass
    return None

"""Asks ADS what it serves, by a plain gRPC stream."""

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from xdscore.resource_types import CLUSTER

_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_PATIENCE_S = 3


def served_clusters(ads_port: int) -> list[str]:
    """The names in a fresh wildcard answer for clusters; empty while ADS does not answer."""
    request = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, resource_names_subscribe=["*"])
    request.node.id = "probe"
    with grpc.insecure_channel(f"127.0.0.1:{ads_port}") as channel:
        ask = channel.stream_stream(
            _SERVICE + "DeltaAggregatedResources",
            request_serializer=discovery_pb2.DeltaDiscoveryRequest.SerializeToString,
            response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
        )
        try:
            for response in ask(iter([request]), timeout=_PATIENCE_S):
                return [resource.name for resource in response.resources]
        except grpc.RpcError:
            pass
    return []


def served_version(ads_port: int) -> str:
    """The version of a fresh wildcard answer for clusters, which is a hash of it; empty while ADS does not answer."""
    request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url)
    request.node.id = "probe"
    with grpc.insecure_channel(f"127.0.0.1:{ads_port}") as channel:
        ask = channel.stream_stream(
            _SERVICE + "StreamAggregatedResources",
            request_serializer=discovery_pb2.DiscoveryRequest.SerializeToString,
            response_deserializer=discovery_pb2.DiscoveryResponse.FromString,
        )
        try:
            for response in ask(iter([request]), timeout=_PATIENCE_S):
                return str(response.version_info)
        except grpc.RpcError:
            pass
    return ""

"""What Envoy is shown: the resources of an environment as static resources of one bootstrap. Pure.

Clusters, listeners and route configurations are shown. Each route configuration stands in a listener of its own, since
over RDS it is judged by itself too; clusters that are named but not shown have a stand-in, since existence is judged
elsewhere (`catalog.references`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from envoy.config.bootstrap.v3.bootstrap_pb2 import Bootstrap
from envoy.config.cluster.v3.cluster_pb2 import Cluster
from envoy.config.core.v3.config_source_pb2 import ApiConfigSource, ApiVersion
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.config.route.v3.route_pb2 import RouteConfiguration
from envoy.extensions.filters.http.router.v3.router_pb2 import Router
from envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2 import (
    HttpConnectionManager,
    HttpFilter,
)
from envoy.extensions.upstreams.http.v3.http_protocol_options_pb2 import HttpProtocolOptions
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from controlplane.builder.deep.showing import SEALED, why_not_shown
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE
from xdscore.schema.references import named_by
from xdscore.schema.walk import unpack

_MESSAGES: Final[dict[str, type[Message]]] = {
    CLUSTER.word: Cluster,
    LISTENER.word: Listener,
    ROUTE.word: RouteConfiguration,
}
# No name of a resource begins so: a space is allowed in one, but nobody writes it first.
_OWN: Final = " deep validation: "
_PREFIX: Final = "type.googleapis.com/"


@dataclass(frozen=True, slots=True)
class Shown:
    """A resource that Envoy may be shown: its `message`, and the names of the clusters that it mentions."""

    message: Message
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True)
class NotShown:
    """A resource that Envoy is not shown; `why` is the reason."""

    why: str


SECRET = NotShown(SEALED)


def shown(word: str, any_bytes: bytes) -> Shown | NotShown:
    """Read a resource of the type `word`, one of `showing.SHOWN`, from the bytes of its Any, and decide whether Envoy
    may be shown it. Resources that are stored encrypted are not read: the constant `SECRET` stands for them.
    """
    if why := why_not_shown(any_bytes):
        return NotShown(why)
    packed = AnyProto.FromString(any_bytes)
    message = _MESSAGES[word].FromString(packed.value)
    # By the schema, which may know more of it than the generated classes.
    known = unpack(packed)
    named = frozenset(name for kind, name, _ in named_by(known) if kind is CLUSTER)
    return Shown(message, named)


def bootstrap(resources: Iterable[Shown]) -> bytes:
    """The serialised Envoy bootstrap with `resources` as its static resources."""
    found = Bootstrap()
    found.node.id = found.node.cluster = "deep-validation"
    static = found.static_resources
    mentioned: set[str] = set()
    for number, each in enumerate(resources):
        mentioned |= each.clusters
        match each.message:
            case Cluster():
                static.clusters.append(each.message)
            case Listener():
                static.listeners.append(each.message)
            case RouteConfiguration():
                static.listeners.append(_listener_of(each.message, number))
    there = {cluster.name for cluster in static.clusters}
    static.clusters.extend(_stand_in(name) for name in sorted(mentioned - there))
    _subscribe(found)
    data: bytes = found.SerializeToString(deterministic=True)
    return data


def _stand_in(name: str) -> Cluster:
    return Cluster(name=name, type=Cluster.STATIC, connect_timeout=Duration(seconds=1))


def _listener_of(routes: RouteConfiguration, number: int) -> Listener:
    """A listener that has only the routes of `routes`. `number` makes its name and address differ from those of other
    listeners; Envoy binds no address while it validates.
    """
    inline = RouteConfiguration()
    inline.CopyFrom(routes)
    inline.ClearField("vhds")  # of use over RDS only
    if not inline.HasField("validate_clusters"):
        inline.validate_clusters.value = False  # its default over RDS; inline it is true
    router = HttpFilter(name="envoy.filters.http.router", typed_config=_packed(Router()))
    manager = HttpConnectionManager(stat_prefix="deep", route_config=inline, http_filters=[router])
    found = Listener(name=f"{_OWN}{routes.name}")
    found.address.pipe.path = f"@parley-deep-validation-{number}"
    http = found.filter_chains.add().filters.add(name="envoy.filters.network.http_connection_manager")
    http.typed_config.CopyFrom(_packed(manager))
    return found


def _subscribe(found: Bootstrap) -> None:
    """Give the bootstrap the ADS source from which its resources say they get others. Envoy connects nowhere while it
    validates.
    """
    server = _stand_in(f"{_OWN}ads")
    protocol = HttpProtocolOptions()
    protocol.explicit_http_config.http2_protocol_options.SetInParent()
    server.typed_extension_protocol_options[HttpProtocolOptions.DESCRIPTOR.full_name].CopyFrom(_packed(protocol))
    found.static_resources.clusters.append(server)
    ads = found.dynamic_resources.ads_config
    ads.api_type = ApiConfigSource.GRPC
    ads.transport_api_version = ApiVersion.V3
    ads.grpc_services.add().envoy_grpc.cluster_name = server.name


def _packed(message: Message) -> AnyProto:
    return AnyProto(type_url=_PREFIX + message.DESCRIPTOR.full_name, value=message.SerializeToString())

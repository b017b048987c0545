"""The table of xDS resource types: the one place that knows how types differ.

Everything that treats one type unlike another (full state, wildcard, order, removal) reads a column here; no other
module compares type names.
"""

from dataclasses import dataclass
from enum import Enum

TYPE_URL_PREFIX = "type.googleapis.com/"


class DeltaMissing(Enum):
    """What a delta response has for a subscribed name that does not exist: an entry in `resource_errors` and, by type,
    one in `removed_resources`, or one in `resources` that has no content but the name and, as its alias, the name again
    (protocol.md E2, decisions C23).
    """

    ENTRY_AND_REMOVAL = "entry_and_removal"
    ENTRY_AND_ALIAS = "entry_and_alias"
    ENTRY_ONLY = "entry_only"


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """One xDS resource type. All there are stand in the table, so that two are equal exactly when they are the same
    object.

    word: its name in URLs, files and the database.
    title: its name in sentences.
    short: its name in the field's jargon, such as CDS.
    message, name_field: its protobuf message, and the field of it that holds the name.
    push_order: types with lower numbers are sent first, to make before break (protocol.md I1).
    full_state: a SotW response holds every subscribed resource, and what is left out is deleted (protocol.md D1).
    wildcard: an empty first subscription, and "*", mean "everything" (protocol.md C2). Of every other type both mean
      nothing: Envoy asks for each by its name, and for a virtual host by `ROUTE/HOST`.
    exclusive: two resources cannot both have what each claims for itself, such as an address (`schema.claims`): clients
      refuse the one that is new, so that what goes is said together with what comes (protocol.md I6).
    secret: content is confidential: encrypted at rest, never in a wildcard, never read back (decisions A8).
    remembers_refused: clients compare an update with what they refused, not with what they use, and acknowledge refused
      content unseen when it is sent again (measured with Envoy 1.40's SDS).
    automatic_quarantine: NACKs may take a revision out of service; endpoints change too fast for that (decisions A11).
    no_ttl: why no resource of the type may have a ttl, as the end of a sentence; empty where one may (protocol.md G3,
      G4, measured with Envoy 1.40).
    service: its own discovery service (protocol.md A1) as `generated module:name`; empty where ADS alone serves it.
    """

    word: str
    message: str
    title: str
    short: str
    name_field: str
    push_order: int
    full_state: bool = False
    wildcard: bool = False
    exclusive: bool = False
    delta_missing: DeltaMissing = DeltaMissing.ENTRY_ONLY
    secret: bool = False
    remembers_refused: bool = False
    automatic_quarantine: bool = True
    no_ttl: str = ""
    service: str = ""

    @property
    def url(self) -> str:
        """The type URL on the wire, e.g. `type.googleapis.com/envoy.config.cluster.v3.Cluster`."""
        return TYPE_URL_PREFIX + self.message


# envoyproxy/envoy#24271, #20131.
_NO_TTL = "Envoy crashes when one of this type runs out in the SotW variant, and takes no notice of it in delta"

SECRET = ResourceType(
    word="secret",
    message="envoy.extensions.transport_sockets.tls.v3.Secret",
    title="Secret",
    short="SDS",
    name_field="name",
    push_order=0,
    secret=True,
    remembers_refused=True,
    no_ttl="Envoy goes on with a secret that ran out",
    service="envoy.service.secret.v3.sds_pb2:SecretDiscoveryService",
)
CLUSTER = ResourceType(
    word="cluster",
    message="envoy.config.cluster.v3.Cluster",
    title="Cluster",
    short="CDS",
    name_field="name",
    push_order=1,
    full_state=True,
    wildcard=True,
    delta_missing=DeltaMissing.ENTRY_AND_REMOVAL,
    service="envoy.service.cluster.v3.cds_pb2:ClusterDiscoveryService",
)
ENDPOINT = ResourceType(
    word="endpoint",
    message="envoy.config.endpoint.v3.ClusterLoadAssignment",
    title="ClusterLoadAssignment",
    short="EDS",
    name_field="cluster_name",
    push_order=2,
    delta_missing=DeltaMissing.ENTRY_AND_REMOVAL,
    automatic_quarantine=False,
    no_ttl=_NO_TTL,
    service="envoy.service.endpoint.v3.eds_pb2:EndpointDiscoveryService",
)
EXTENSION = ResourceType(
    word="extension",
    message="envoy.config.core.v3.TypedExtensionConfig",
    title="TypedExtensionConfig",
    short="ECDS",
    name_field="name",
    push_order=3,
    service="envoy.service.extension.v3.config_discovery_pb2:ExtensionConfigDiscoveryService",
)
LISTENER = ResourceType(
    word="listener",
    message="envoy.config.listener.v3.Listener",
    title="Listener",
    short="LDS",
    name_field="name",
    push_order=4,
    full_state=True,
    wildcard=True,
    exclusive=True,
    delta_missing=DeltaMissing.ENTRY_AND_REMOVAL,
    service="envoy.service.listener.v3.lds_pb2:ListenerDiscoveryService",
)
SCOPED_ROUTE = ResourceType(
    word="scoped_route",
    message="envoy.config.route.v3.ScopedRouteConfiguration",
    title="ScopedRouteConfiguration",
    short="SRDS",
    name_field="name",
    push_order=5,
    full_state=True,
    wildcard=True,
    exclusive=True,
    delta_missing=DeltaMissing.ENTRY_AND_REMOVAL,
    no_ttl="it is not known what Envoy does when one runs out",
    service="envoy.service.route.v3.srds_pb2:ScopedRoutesDiscoveryService",
)
ROUTE = ResourceType(
    word="route",
    message="envoy.config.route.v3.RouteConfiguration",
    title="RouteConfiguration",
    short="RDS",
    name_field="name",
    push_order=6,
    no_ttl=_NO_TTL,
    service="envoy.service.route.v3.rds_pb2:RouteDiscoveryService",
)
VIRTUAL_HOST = ResourceType(
    word="virtual_host",
    message="envoy.config.route.v3.VirtualHost",
    title="VirtualHost",
    short="VHDS",
    name_field="name",
    push_order=7,
    exclusive=True,
    delta_missing=DeltaMissing.ENTRY_AND_ALIAS,
    no_ttl="a virtual host cannot be renewed: to Envoy, one without content is an alias that nobody could resolve",
    service="envoy.service.route.v3.rds_pb2:VirtualHostDiscoveryService",
)
RUNTIME = ResourceType(
    word="runtime",
    message="envoy.service.runtime.v3.Runtime",
    title="Runtime",
    short="RTDS",
    name_field="name",
    push_order=8,
    delta_missing=DeltaMissing.ENTRY_AND_REMOVAL,
    service="envoy.service.runtime.v3.rtds_pb2:RuntimeDiscoveryService",
)

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    SECRET,
    CLUSTER,
    ENDPOINT,
    EXTENSION,
    LISTENER,
    SCOPED_ROUTE,
    ROUTE,
    VIRTUAL_HOST,
    RUNTIME,
)
"""Every type Parley serves, in push order."""

SECRET_WORDS: frozenset[str] = frozenset(kind.word for kind in RESOURCE_TYPES if kind.secret)
"""The types that only a rule that names them lets clients read."""

by_word: dict[str, ResourceType] = {kind.word: kind for kind in RESOURCE_TYPES}
by_url: dict[str, ResourceType] = {kind.url: kind for kind in RESOURCE_TYPES}
by_message: dict[str, ResourceType] = {kind.message: kind for kind in RESOURCE_TYPES}

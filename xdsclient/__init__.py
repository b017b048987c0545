"""A client of xDS that does what gRFC A88 says: cache states, watchers, timers and resource errors, SotW and delta.

    async with XdsClient(Bootstrap.load(Path("bootstrap.json"))) as client:
        async with client.follow(CLUSTERS, "pay") as news:
            async for item in news:
                ...                       # Changed(resource or Status), AmbientError(Status)
        async with client.follow_collection(CLUSTERS, "*") as news:
            async for item in news:
                ...                       # MemberChanged(name, …), MemberGone(name, Status), CollectionStatus(Status)

    bootstrap ──▶ client ──▶ link ──▶ engine                 `engine` decides everything and touches nothing
                    │          └────▶ channels, wire         `link` carries it out over grpc.aio
                    └──▶ watching (callbacks, async for), names (authorities), decoding (types and their rules)

On top of it: `dependencies` (gRFC A74: from a target to one configuration), `csds` (A40) and `prometheus` (A78). They
are imported from their modules, so that whoever does not use them does not load them.

It imports nothing of ours but `xdscore`.
"""

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
)
from xdsclient.client import DataErrorHandling, XdsClient
from xdsclient.decoding import (
    CLUSTERS,
    ENDPOINTS,
    LISTENERS,
    ROUTES,
    RUNTIMES,
    SECRETS,
    STANDARD_TYPES,
    ClientType,
    InvalidResourceError,
    standard_type,
)
from xdsclient.engine.collection import is_collection
from xdsclient.engine.events import Variant
from xdsclient.engine.values import (
    ABSENT,
    OK,
    CacheEntry,
    CacheState,
    Resource,
    ResourceKey,
    ServerFeature,
    Status,
    StatusCode,
    cache_state_label,
)
from xdsclient.metrics import NO_METRICS, Metrics, ResourceLabels
from xdsclient.watching import (
    AmbientError,
    Changed,
    CollectionStatus,
    CollectionWatcher,
    Following,
    FollowingCollection,
    MemberAmbientError,
    MemberChanged,
    MemberGone,
    ResourceWatcher,
    Watch,
)

__all__ = [
    "ABSENT",
    "CLUSTERS",
    "ENDPOINTS",
    "LISTENERS",
    "NO_METRICS",
    "OK",
    "ROUTES",
    "RUNTIMES",
    "SECRETS",
    "STANDARD_TYPES",
    "AmbientError",
    "Authority",
    "Bootstrap",
    "BootstrapError",
    "CacheEntry",
    "CacheState",
    "Changed",
    "ClientType",
    "CollectionStatus",
    "CollectionWatcher",
    "DataErrorHandling",
    "Following",
    "FollowingCollection",
    "FromEnvironment",
    "Insecure",
    "InvalidResourceError",
    "Locality",
    "MemberAmbientError",
    "MemberChanged",
    "MemberGone",
    "Metrics",
    "Node",
    "Resource",
    "ResourceKey",
    "ResourceLabels",
    "ResourceWatcher",
    "Server",
    "ServerFeature",
    "Status",
    "StatusCode",
    "Tls",
    "Variant",
    "Watch",
    "XdsClient",
    "cache_state_label",
    "is_collection",
    "standard_type",
]

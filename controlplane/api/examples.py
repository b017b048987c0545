"""A body for each operation that takes one, shown by the schema: the `EXAMPLES` of each module of `views`, each under
its operation. A test sends them: what is refused is no example.
"""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.api import views
from xdscore.modules import modules_of

CLUSTER: Final[dict[str, Any]] = {
    "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "name": "pay",
    "type": "EDS",
    "eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}},
    "connect_timeout": "1s",
}


def examples() -> Mapping[str, Any]:
    """Every example, by operation."""
    return {
        operation: body for module in modules_of(views) for operation, body in getattr(module, "EXAMPLES", {}).items()
    }

"""A body for each operation that takes one, shown by the schema. A test sends them: what is refused is no example."""

from collections.abc import Mapping
from typing import Any, Final

_CLUSTER: Final[dict[str, Any]] = {
    "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "name": "pay",
    "type": "EDS",
    "eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}},
    "connect_timeout": "1s",
}
_GROUP: Final[dict[str, Any]] = {
    "key": "payments",
    "matchers": [{"identity": "spiffe://corp/ns/pay/*"}],
    "trust": "verified",
}
_RULE: Final[dict[str, Any]] = {
    "position": 10,
    "client_groups": ["payments"],
    "types": ["cluster"],
    "pattern": "pay*",
    "effect": "deny",
    "message": "Ask the payments team.",
}
_CASE: Final[dict[str, Any]] = {
    "identity": "spiffe://corp/ns/pay/sa/checkout",
    "type": "cluster",
    "name": "pay",
    "expect": "deny",
}

# By operation.
EXAMPLES: Final[Mapping[str, Any]] = {
    "environment_create": {"key": "staging", "selectors": [{"node_id": "staging-*"}], "default_effect": "allow"},
    "environment_update": {"quarantine": "automatic"},
    "resource_put": _CLUSTER,
    "apply": {"resources": [_CLUSTER], "delete": [{"type": "cluster", "name": "old"}], "message": "new weights"},
    "validate": {"resources": [_CLUSTER]},
    "environment_rollback": {"to_epoch": 1, "reason": "checkout fails", "hold": True},
    "change_undo": {"reason": "every listener is gone"},
    "client_group_create": _GROUP,
    "client_group_replace": _GROUP,
    "client_group_update": {"matchers": [{"identity": "spiffe://corp/ns/pay/sa/*"}]},
    "rule_create": _RULE,
    "rule_replace": _RULE,
    "rule_update": {"enabled": False},
    "access_test": {"cases": [_CASE]},
    "access_case_create": {**_CASE, "blocking": True},
    "client_report": {
        "source": "envoy-admin",
        "types": ["cluster"],
        "names": [
            {"type": "cluster", "name": "pay", "state": "ACKED", "held": True, "version": "b78db11a53ad7672"},
            {"type": "cluster", "name": "cart", "state": "WARMING", "held": True, "version_info": "w7"},
        ],
    },
    "incident_update": {"state": "acknowledged"},
    "incident_quarantine": {"reason": "clients refuse it"},
    "incident_release": {"reason": "the certificate is there now"},
    "channel_create": {
        "name": "on call",
        "kind": "webhook",
        "target": "https://hooks.example/parley",
        "environments": ["default"],
    },
    "token_create": {"name": "pipeline", "scopes": [{"role": "editor", "environment": "default"}], "expires_at": None},
    "client_token_create": {"subject": "payments-checkout", "environment": "default"},
}

"""What the demo gets wrong on purpose: a client that is denied, and a change that Envoy refuses.

Somebody else than the administrator writes the change: a pipeline with a token of its own. Each start begins anew, and
what an earlier one left is taken up or replaced.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from controlplane.ops.demo import resources
from controlplane.ops.demo.rest import Rest

PIPELINE: Final = "billing-pipeline"
_GROUP: Final = "demo-guests"
_HERE: Final = "/environments/default"
_ASK_S: Final = 0.2


def guest_denied(rest: Rest, bootstrap: Path) -> str:
    """Write a rule against the guests; what one of them is told. It stays connected, as a client in trouble does."""
    if not any(group["key"] == _GROUP for group in _listed(rest, f"{_HERE}/client-groups")):
        matchers = [{"node_id": "demo-guest*"}]
        rest.post(f"{_HERE}/client-groups", {"key": _GROUP, "matchers": matchers, "trust": "declared"})
        made = rest.post(
            f"{_HERE}/rules",
            {
                "client_groups": [_GROUP],
                "types": ["listener"],
                "pattern": resources.GRPC_TARGET,
                "effect": "deny",
                "message": "guests may not call echo; ask #demo.",
            },
        )
        rest.published(str(made["change"]))
    environment = os.environ | {"GRPC_XDS_BOOTSTRAP": str(bootstrap)}
    command = [sys.executable, "-m", "controlplane.ops.demo.guest", resources.GRPC_TARGET]
    guest = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    return guest.stdout.readline().strip() if guest.stdout is not None else ""


def change_refused(rest: Rest, within_s: float) -> str:
    """Change a sound cluster, as a pipeline would, so that clients refuse it; a text about the incident, or about what
    is missing for one.
    """
    for token in _listed(rest, "/tokens"):
        if token["name"] == PIPELINE and not token["revoked_at"]:
            rest.delete(f"/tokens/{token['id']}")
    scopes = [{"role": "editor", "environment": "default"}]
    made = rest.post("/tokens", {"name": PIPELINE, "scopes": scopes})
    pipeline = rest.as_token(str(made["token"]))

    deadline = time.monotonic() + within_s
    revisions = f"{_HERE}/resources/cluster/{resources.BILLING_CLUSTER}/revisions"
    while not _listed(rest, revisions)[0]["proven"]:
        if time.monotonic() > deadline:
            return "not shown: Envoy has not acknowledged the cluster in time"
        time.sleep(_ASK_S)
    change = pipeline.post(
        f"{_HERE}/apply",
        {"resources": [resources.billing(checked=True)], "message": "check the health of billing"},
    )
    while True:
        for incident in _listed(rest, "/incidents"):
            if incident["change"] == change["id"]:
                return str(incident["message"])
        if time.monotonic() > deadline:
            return "not shown: Envoy has not refused it in time"
        time.sleep(_ASK_S)


def _listed(rest: Rest, path: str) -> list[dict[str, object]]:
    found = rest.get(path)["results"]
    return found if isinstance(found, list) else []

"""Which implementation of xDS a client is, by the name it gives itself. Pure.

A declaration: it decides nothing but words and groups.
"""

from enum import StrEnum
from functools import lru_cache


class ClientFamily(StrEnum):
    """The implementations that differ in what they say and do (clients.md); OTHER is everything else."""

    ENVOY = "envoy"
    GRPC_CORE = "grpc-core"
    GRPC_GO = "grpc-go"
    GRPC_JAVA = "grpc-java"
    GRPC_NODE = "grpc-node"
    OTHER = "other"


# The first words of node.user_agent_name, as observed (clients.md section 2.5).
_STARTS = (
    ("envoy", ClientFamily.ENVOY),
    ("grpc c-core", ClientFamily.GRPC_CORE),
    ("grpc go", ClientFamily.GRPC_GO),
    ("grpc java", ClientFamily.GRPC_JAVA),
    ("grpc node", ClientFamily.GRPC_NODE),
)


@lru_cache(maxsize=256)  # a fleet calls itself the same
def family_of(user_agent: str) -> ClientFamily:
    """The family of a client that calls itself `user_agent`."""
    spoken = user_agent.casefold()
    return next((family for start, family in _STARTS if spoken.startswith(start)), ClientFamily.OTHER)

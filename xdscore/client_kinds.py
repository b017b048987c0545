"""Which implementation of xDS a client is, by what it calls itself, and how it takes a NACK of its own. Pure.

A declaration, and easily forged: it decides words, groups, and from whom refused content is withheld; never a right.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

UNKNOWN_VERSION = "?"
_MAX_NUMBER_CHARS = 4


class ClientFamily(StrEnum):
    """The software of clients, as far as behaviour and texts differ (clients.md); OTHER is everything else."""

    ENVOY = "envoy"
    GRPC_CORE = "grpc-core"
    GRPC_GO = "grpc-go"
    GRPC_JAVA = "grpc-java"
    GRPC_NODE = "grpc-node"
    GRPC_RUST = "grpc-rust"
    OTHER = "other"

    @property
    def may_drop_refused(self) -> bool:
        """Whether a client of this family may be left without content of a name of which it refused an update.

        With the server feature `fail_on_data_errors` a client drops what it had (A88); grpc-core and grpc-java read the
        feature (clients.md section 1). grpc-rust, whatever its bootstrap says, keeps nothing for those who ask for the
        name next, while open channels go on with theirs (source: notify_resource_error of xds-client,
        resource_manager.rs of tonic-xds, grpc/grpc-rust). Envoy, grpc-go and grpc-node keep what they had. Of unknown
        clients it is assumed.
        """
        return self in _MAY_DROP_REFUSED


_MAY_DROP_REFUSED = frozenset(
    {ClientFamily.GRPC_CORE, ClientFamily.GRPC_JAVA, ClientFamily.GRPC_RUST, ClientFamily.OTHER}
)


@dataclass(frozen=True, slots=True, order=True)
class ClientKind:
    """Family and version of a client, on which its NACKs depend (decisions A12).

    `version` is "major.minor", or "?" where the client names none.
    """

    family: ClientFamily
    version: str = UNKNOWN_VERSION

    def __str__(self) -> str:
        """Family and version as they are spelled in pages, the database and snapshots: `grpc-core 1.85`."""
        return f"{self.family.value} {self.version}"


UNKNOWN_KIND = ClientKind(ClientFamily.OTHER)

# The first words of node.user_agent_name, as observed (clients.md section 2.5); of tonic-xds as its source has them
# (tonic-xds/src/xds/bootstrap.rs of grpc/grpc-rust).
_STARTS = (
    ("envoy", ClientFamily.ENVOY),
    ("grpc c-core", ClientFamily.GRPC_CORE),
    ("grpc go", ClientFamily.GRPC_GO),
    ("grpc java", ClientFamily.GRPC_JAVA),
    ("grpc node", ClientFamily.GRPC_NODE),
    ("tonic-xds", ClientFamily.GRPC_RUST),
)


@lru_cache(maxsize=256)  # a fleet calls itself the same
def family_of(user_agent: str) -> ClientFamily:
    """The family of a client that calls itself `user_agent`."""
    spoken = user_agent.casefold()
    return next((family for start, family in _STARTS if spoken.startswith(start)), ClientFamily.OTHER)


@lru_cache(maxsize=256)
def kind_of(user_agent: str, version: str) -> ClientKind:
    """The kind of a client whose node says this `user_agent_name` and version, such as `1.40.0` or `C-core 1.85.1`.

    Of an unknown family the version is ignored, so that nobody can invent kinds.
    """
    family = family_of(user_agent)
    return UNKNOWN_KIND if family is ClientFamily.OTHER else ClientKind(family, _major_minor(version))


def _major_minor(version: str) -> str:
    for word in version.split():
        major, _, rest = word.partition(".")
        minor = rest.partition(".")[0]
        if _is_number(major) and _is_number(minor):
            return f"{int(major)}.{int(minor)}"
    return UNKNOWN_VERSION


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_NUMBER_CHARS

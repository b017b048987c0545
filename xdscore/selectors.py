"""Which environment a stream belongs to: ordered selectors over what is known of the client (interfaces.md section 4).

In `none` mode node fields select; in `mtls` and `token` mode only the verified identity may (decisions C15).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from xdscore.client_kinds import UNKNOWN_KIND, ClientKind
from xdscore.names import any_glob_matches, glob_matches

DEFAULT_ENVIRONMENT = "default"
IDENTITY_NAME = "{name}"
"""In a pattern over node ids: the part of the verified identity after its last slash."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What a stream says, and proves, about itself. `identity` is empty when nothing was verified.

    `kind` is what software it says it is: it selects nothing, and is no right.
    """

    identity: str = ""
    node_id: str = ""
    node_cluster: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    kind: ClientKind = UNKNOWN_KIND

    @property
    def verified(self) -> bool:
        """Whether the transport proved who this is."""
        return self.identity != ""


@dataclass(frozen=True, slots=True)
class Selector:
    """Globs over facts, AND-ed; an absent field matches anything. A selector without any field matches nothing."""

    identity: str | None = None
    node_id: str | None = None
    node_cluster: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def declares(self) -> bool:
        """Whether it looks at anything that a client merely says of itself."""
        return self.node_id is not None or self.node_cluster is not None or bool(self.metadata)

    def as_json(self) -> dict[str, object]:
        """The fields that are given, as JSON; `Selector(**fields)` reads them back."""
        return {field: value for field, value in asdict(self).items() if value}

    def fits(self, client: ClientFacts) -> bool:
        """Whether every field given matches; an identity only matches where one was verified."""
        if not self.declares and self.identity is None:
            return False
        if self.identity is not None and not client.verified:
            return False
        return (
            _glob(self.identity, client.identity)
            and _glob(self.node_id, client.node_id)
            and _glob(self.node_cluster, client.node_cluster)
            and all(
                key in client.metadata and glob_matches(glob, client.metadata[key])
                for key, glob in self.metadata.items()
            )
        )

    def but_for_metadata(self, client: ClientFacts) -> bool:
        """Whether everything but its metadata matches."""
        rest = Selector(self.identity, self.node_id, self.node_cluster)
        return rest.fits(client) or not (rest.declares or rest.identity)

    def matches(self, client: ClientFacts) -> bool:
        """Whether it leads this client to an environment: declared fields count only while nothing is verified
        (decisions C15).
        """
        return not (self.declares and client.verified) and self.fits(client)


@dataclass(frozen=True, slots=True)
class EnvironmentChoice:
    """One environment as the choice sees it: its key, the selectors that lead to it, and which nodes it takes.

    `node_ids` are patterns over the node id of a client whose identity is verified (reliability threat 2): globs in
    which `{name}` stands for what follows the identity's last slash. Without any, every node id is taken.
    """

    key: str
    selectors: tuple[Selector, ...]
    node_ids: tuple[str, ...] = ()

    def takes_node(self, client: ClientFacts) -> bool:
        """Whether the client's node id is one that its identity may use here. While nothing is verified there is
        nothing that a node id could be bound to.
        """
        if not self.node_ids or not client.verified:
            return True
        return any_glob_matches(self.node_ids_of(client), client.node_id)

    def node_ids_of(self, client: ClientFacts) -> tuple[str, ...]:
        """The patterns with the name of the client's identity put in. An identity never holds a star, so that what is
        put in stands for itself; of one that did, none is left.
        """
        name = client.identity.rpartition("/")[2]
        return () if "*" in name else tuple(pattern.replace(IDENTITY_NAME, name) for pattern in self.node_ids)


def choose_environment(client: ClientFacts, environments: Sequence[EnvironmentChoice]) -> str:
    """The key of the first environment, by position, with a matching selector; else `default`."""
    for environment in environments:
        if any(selector.matches(client) for selector in environment.selectors):
            return environment.key
    return DEFAULT_ENVIRONMENT


def _glob(pattern: str | None, value: str) -> bool:
    return pattern is None or glob_matches(pattern, value)

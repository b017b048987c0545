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
    """What a client says about itself on its stream, and what the transport verified. `identity` is empty when nothing
    was verified.

    `kind` is the software that the client says it is; no selector looks at it, and no right rests on it.
    """

    identity: str = ""
    node_id: str = ""
    node_cluster: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    kind: ClientKind = UNKNOWN_KIND

    @property
    def verified(self) -> bool:
        """Whether the transport verified the client's identity."""
        return self.identity != ""


@dataclass(frozen=True, slots=True)
class Selector:
    """Glob patterns for facts about a client; all fields given must match, and an absent field matches anything. A
    selector without any field matches nothing.
    """

    identity: str | None = None
    node_id: str | None = None
    node_cluster: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def declares(self) -> bool:
        """Whether the selector looks at any fact that a client merely declares about itself."""
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
        """Whether every field of the selector except its metadata matches the client."""
        rest = Selector(self.identity, self.node_id, self.node_cluster)
        return rest.fits(client) or not (rest.declares or rest.identity)

    def matches(self, client: ClientFacts) -> bool:
        """Whether the selector leads this client to an environment: declared fields count only while nothing is
        verified (decisions C15).
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
        """Whether the environment accepts the client's node id for the client's identity. Always true without a
        verified identity, because then there is nothing to bind a node id to.
        """
        if not self.node_ids or not client.verified:
            return True
        return any_glob_matches(self.node_ids_of(client), client.node_id)

    def node_ids_of(self, client: ClientFacts) -> tuple[str, ...]:
        """The patterns of `node_ids` with `{name}` replaced by the name in the client's identity. An identity never
        holds a star, so that the name stands for itself; for an identity that did, there are no patterns.
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

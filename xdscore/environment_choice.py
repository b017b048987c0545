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
    """What a client says of itself in its node, and the identity that the transport verified (empty: none).

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
    """Patterns (with `*`) for facts about a client. All fields that are given must match; None matches anything. A
    selector without any field matches nothing.
    """

    identity: str | None = None
    node_id: str | None = None
    node_cluster: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def declares(self) -> bool:
        """Whether the selector looks at anything that a client only says of itself."""
        return self.node_id is not None or self.node_cluster is not None or bool(self.metadata)

    def as_json(self) -> dict[str, object]:
        """The fields that are given, as JSON; `Selector(**fields)` reads them back."""
        return {field: value for field, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, tree: object) -> "Selector":
        """The selector that `as_json` made this JSON object of. Raises ValueError for anything else."""
        if not isinstance(tree, dict) or not tree.keys() <= {"identity", "node_id", "node_cluster", "metadata"}:
            raise ValueError("not a selector")
        metadata = tree.get("metadata", {})
        texts = [value for field, value in tree.items() if field != "metadata"]
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in (*texts, *metadata.values())):
            raise ValueError("a selector with a pattern that is no text")
        return cls(**tree)

    def fits(self, client: ClientFacts) -> bool:
        """Whether every given field matches the client; a given `identity` matches only a verified one."""
        # Asked of every client of a fleet: the cheap questions first.
        if self.identity is None:
            if not self.declares:
                return False
        elif not client.verified or not glob_matches(self.identity, client.identity):
            return False
        return (
            (self.node_id is None or glob_matches(self.node_id, client.node_id))
            and (self.node_cluster is None or glob_matches(self.node_cluster, client.node_cluster))
            and (not self.metadata or self._fits_metadata(client.metadata))
        )

    def _fits_metadata(self, metadata: Mapping[str, str]) -> bool:
        return all(key in metadata and glob_matches(glob, metadata[key]) for key, glob in self.metadata.items())

    def but_for_metadata(self, client: ClientFacts) -> bool:
        """Whether every field of the selector except its metadata matches the client."""
        rest = Selector(self.identity, self.node_id, self.node_cluster)
        return rest.fits(client) or not (rest.declares or rest.identity)

    def matches(self, client: ClientFacts) -> bool:
        """Whether the selector leads this client to an environment. Fields of the node match only a client without a
        verified identity (decisions C15).
        """
        return not (self.declares and client.verified) and self.fits(client)


@dataclass(frozen=True, slots=True)
class EnvironmentChoice:
    """What is needed of one environment to choose it for a client: its key, the selectors that lead to it, and which
    nodes it accepts.

    `node_ids` are patterns for the node id of a client whose identity is verified (reliability threat 2), in which
    `{name}` stands for what follows the identity's last slash. Without any, every node id is accepted.
    """

    key: str
    selectors: tuple[Selector, ...]
    node_ids: tuple[str, ...] = ()

    def takes_node(self, client: ClientFacts) -> bool:
        """Whether the environment accepts the client's node id for the client's identity. Always True without a
        verified identity, because there is nothing to bind a node id to.
        """
        if not self.node_ids or not client.verified:
            return True
        return any_glob_matches(self.node_ids_of(client), client.node_id)

    def node_ids_of(self, client: ClientFacts) -> tuple[str, ...]:
        """The patterns of `node_ids` with `{name}` replaced by the name in the client's identity; none when that name
        has a star, which would act as a pattern.
        """
        name = client.identity.rpartition("/")[2]
        return () if "*" in name else tuple(pattern.replace(IDENTITY_NAME, name) for pattern in self.node_ids)


def choose_environment(client: ClientFacts, environments: Sequence[EnvironmentChoice]) -> str:
    """The key of the first of these environments with a selector that matches the client; `default` when none has
    one.
    """
    for environment in environments:
        if any(selector.matches(client) for selector in environment.selectors):
            return environment.key
    return DEFAULT_ENVIRONMENT

"""Sides: which clients are sent the candidate content of an open rollout, and which the stable one. Pure.

The side of a client is a function of the rollout's table, which is part of the snapshot, and of who the client is, so
that it is the same on every replica, after every reconnect and restart (rollouts.md R1).
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import ClientFacts

WHOLE_PERMILLE = 1000
"""The permille that means every client."""

_DIGEST_BYTES = 16
_PLACE_BYTES = 8
_DIGEST_CHARS = 2 * _DIGEST_BYTES
# As long as a key of BLAKE2b may be.
_MAX_SEED_BYTES = 64
_MAX_ID_CHARS = 64


class Side(StrEnum):
    """One of the two sides of an environment with an open rollout. Without one every client is on the stable side."""

    STABLE = "stable"
    CANDIDATE = "candidate"

    # Enum's own hash is computed in Python, and audiences are hashed for every stream that is woken.
    __hash__ = str.__hash__


@dataclass(frozen=True, slots=True)
class RolloutTable:
    """Who is on the candidate side of an open rollout.

    id: the rollout's public id; `step`: the number of its current step, 0 for the first.
    picks: the digests (`client_digest`) of clients that were chosen one by one.
    groups: client groups whose members all are on the candidate side, as they were when the rollout opened.
    permille: how many of a thousand of all clients are on the candidate side beside those, 0 to 1000.
    seed: a text that is the rollout's own, so that `permille` does not mean the same clients in every rollout.

    Raises ValueError, when made, for a permille, step, seed or id that is out of bounds, a pick that is no digest, and
    two groups with one key.
    """

    id: str
    step: int
    picks: frozenset[str]
    groups: tuple[ClientGroup, ...]
    permille: int
    seed: str

    def __post_init__(self) -> None:
        if not 0 <= self.permille <= WHOLE_PERMILLE or self.step < 0:
            raise ValueError(f"a rollout at step {self.step} with {self.permille} of 1000 clients")
        if not 0 < len(self.id) <= _MAX_ID_CHARS or not 0 < len(self.seed.encode()) <= _MAX_SEED_BYTES:
            raise ValueError("a rollout whose id or seed is empty or too long")
        if not all(len(pick) == _DIGEST_CHARS and pick.strip("0123456789abcdef") == "" for pick in self.picks):
            raise ValueError("a rollout that picks something else than the digest of a client")
        if len({group.key for group in self.groups}) != len(self.groups):
            raise ValueError("a rollout with a group that is there twice")

    def as_json(self) -> dict[str, object]:
        """The table as a JSON object; equal tables give equal objects."""
        return {
            "id": self.id,
            "step": self.step,
            "picks": sorted(self.picks),
            "groups": [group.as_json() for group in self.groups],
            "permille": self.permille,
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, tree: object) -> "RolloutTable":
        """The table that `as_json` made this JSON object of. Raises ValueError for anything else."""
        match tree:
            case {
                "id": str() as rollout,
                "step": int() as step,
                "picks": list() as picks,
                "groups": list() as groups,
                "permille": int() as permille,
                "seed": str() as seed,
                **others,
            } if not others and not isinstance(step, bool) and not isinstance(permille, bool):
                if not all(isinstance(pick, str) for pick in picks):
                    raise ValueError("a rollout whose picks are not texts")
                read = tuple(ClientGroup.from_json(group) for group in groups)
                return cls(rollout, step, frozenset(picks), read, permille, seed)
        raise ValueError("not the table of a rollout")


def client_digest(environment: str, client: ClientFacts) -> str:
    """A hash, in hexadecimal digits, of what a client is to a rollout: its environment's key, its verified identity and
    its node id. An ADS process knows it by itself, without a database (rollouts.md R1).
    """
    # The lengths make the three parts unambiguous, whatever characters a client put into its node id.
    exact = f"{len(environment)}:{environment}{len(client.identity)}:{client.identity}{client.node_id}"
    data = exact.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=_DIGEST_BYTES, person=b"parley-side").hexdigest()


def side_of(table: RolloutTable | None, environment: str, client: ClientFacts) -> Side:
    """The side of a client by this table (rollouts.md R1). Without a table, because no rollout is open, it is the
    stable one.
    """
    return Side.STABLE if table is None else side_of_digest(table, client_digest(environment, client), client)


def side_of_digest(table: RolloutTable, digest: str, client: ClientFacts) -> Side:
    """The side of a client whose `client_digest` is known already: picks come first, then groups, then the client's
    place among a thousand.

    As `permille` grows, clients only join: the place of a client does not depend on it.
    """
    if digest in table.picks or any(group.has(client) for group in table.groups):
        return Side.CANDIDATE
    return Side.CANDIDATE if place_of(table.seed, digest) < table.permille else Side.STABLE


def place_of(seed: str, digest: str) -> int:
    """The place, 0 to 999, of the client with this digest among all clients, by a rollout's seed: clients are on the
    candidate side in the order of their places.
    """
    hashed = blake2b(digest.encode(), digest_size=_PLACE_BYTES, key=seed.encode(), person=b"parley-place").digest()
    return int.from_bytes(hashed, "big") % WHOLE_PERMILLE

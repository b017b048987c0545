"""What an ADS process reports: values only. `services.facts_write` stores a batch of them.

Times are ages in seconds at the moment the batch was made, because the clocks of machines differ: the database's own
clock turns them into moments. Every text is already bounded and harmless (`foreign_text`), and what a client said
without secrets: its type says so.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from controlplane.catalog.values import ProvenContent
from controlplane.clients.foreign_text import KeptText
from xdscore.client_kinds import ClientFamily
from xdscore.evidence import Evidence

# What one transaction may take (decisions part 7): about 15 ms of SQLite's one writer.
MAX_BATCH_KEYS = 4_000

HASH_CHARS = 32


class SubscriptionState(StrEnum):
    """How far one subscription of a stream has come with the last response it was sent."""

    REQUESTED = "requested"  # asked for, nothing sent yet
    SENT = "sent"
    ACKED = "acked"
    NACKED = "nacked"


@dataclass(frozen=True, slots=True)
class Serving:
    """The snapshot that an ADS process serves of an environment; `epoch` 0: none. `refused`: why it does not serve a
    newer one, as a sentence.
    """

    lineage: str = ""
    epoch: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaFact:
    """The ADS process that reports. `stopping`: this is its last report, and no stream of it is open any more.

    `serves` is by environment; None: it does not say. `place`: `replica_place`, empty if it may have neighbours there;
    `begins`: nothing of it was written yet, and it takes the place of whoever was there before.
    """

    id: str
    host: str
    pid: int
    age_s: float
    nacks_dropped: int = 0
    stopping: bool = False
    serves: Mapping[str, Serving] | None = None
    place: str = ""
    begins: bool = False


class ClientFact(NamedTuple):
    """A client that was seen `age_s` seconds ago. `id` is `identity.client_id` of environment, identity and node id.

    `accountable`: on whose share its row counts (`xdscore.shares`).
    """

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    family: ClientFamily
    user_agent: str
    user_agent_version: str
    age_s: float
    accountable: str = ""


class StreamFact(NamedTuple):
    """An open stream of a client, opened `age_s` seconds ago."""

    id: str
    client: str
    variant: str
    peer: str
    age_s: float


class StreamEnd(NamedTuple):
    """The end of a stream, with its cause as an operator reads it."""

    id: str
    cause: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Interned:
    """A list that many rows share, under its hash: the names of a subscription, or the contents of a response."""

    id: str
    count: int
    packed: bytes


class SubscriptionSays(NamedTuple):
    """The state of one type's subscription on a stream, without its times. `names`: the id of an `Interned`.

    `sent` and `acked` are versions on the wire, empty when that never happened. In a fleet that takes a change it is
    the same for thousands of clients.
    """

    word: str
    names: str
    wildcard: bool
    state: SubscriptionState
    sent: str = ""
    acked: str = ""


class SubscriptionFact(NamedTuple):
    """The subscription of a stream to one type as it is now, with ages in seconds. An age of None: that never
    happened.
    """

    stream: str
    says: SubscriptionSays
    sent_age_s: float | None = None
    acked_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class NackFact:
    """A NACK: the version of the response, the client's text, the hashes of what the response held and of the suspects.

    `accountable`: on whose share it counts. `evidence`: on which ground they are suspected. `kept`: the hash of what
    the client had acknowledged of the suspects; `healing`: it is sent that again.
    """

    client: str
    stream: str
    word: str
    version: str
    code: int
    text: KeptText
    resources: str
    suspects: str
    kept: str
    repeats: int
    age_s: float
    evidence: Evidence = Evidence.TEXT
    healing: bool = False
    accountable: str = ""


class ProbeFact(NamedTuple):
    """The fact that a client acknowledged a content that is withheld from others and that it was let try."""

    client: str
    word: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class FactBatch:
    """The facts that one transaction writes. Whatever a fact refers to is in the same batch, or was written before."""

    replica: ReplicaFact
    clients: tuple[ClientFact, ...] = ()
    streams: tuple[StreamFact, ...] = ()
    ends: tuple[StreamEnd, ...] = ()
    name_sets: tuple[Interned, ...] = ()
    subscriptions: tuple[SubscriptionFact, ...] = ()
    content_lists: tuple[Interned, ...] = ()
    nacks: tuple[NackFact, ...] = ()
    proven: tuple[ProvenContent, ...] = field(default=())
    probes: tuple[ProbeFact, ...] = ()

    @property
    def keys(self) -> int:
        """The number of rows that counts against MAX_BATCH_KEYS."""
        answers = len(self.nacks) + len(self.proven) + len(self.probes)
        return len(self.streams) + len(self.ends) + len(self.subscriptions) + answers


def replica_place(host: str, home: str, address: str, worker: str) -> str:
    """A hash that a restarted ADS process has in common with its dead self and with no other: of machine, home,
    address, and which of several workers it is.
    """
    return blake2b(f"{host}\0{home}\0{address}\0{worker}".encode(), digest_size=HASH_CHARS // 2).hexdigest()


def intern_names(names: Iterable[str]) -> Interned:
    """The interned form of a set of names: equal sets have equal ids."""
    return _interned(sorted(names))


def intern_contents(contents: Iterable[tuple[str, str]]) -> Interned:
    """The interned form of a response: the (name, version) of every resource, in order."""
    return _interned([list(content) for content in contents])


def unpack_names(packed: bytes) -> tuple[str, ...]:
    """The names of an interned set, sorted."""
    return tuple(json.loads(zlib.decompress(packed)))


def unpack_contents(packed: bytes) -> tuple[tuple[str, str], ...]:
    """The contents of an interned response, in order."""
    return tuple((name, version) for name, version in json.loads(zlib.decompress(packed)))


def _interned(values: list[str] | list[list[str]]) -> Interned:
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return Interned(blake2b(data, digest_size=HASH_CHARS // 2).hexdigest(), len(values), zlib.compress(data, level=1))


NO_NAMES = intern_names(())

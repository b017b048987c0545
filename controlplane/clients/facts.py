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
from controlplane.clients.held_sets import HeldRow
from controlplane.history.values import Tallied
from xdscore.client_kinds import ClientFamily
from xdscore.evidence import Evidence

# What one transaction may take (decisions part 7): about 15 ms of SQLite's one writer.
MAX_BATCH_KEYS = 4_000

HASH_CHARS = 32

# The variant of a "stream" that is none: the subscription of a client that polls.
POLLS = "poll"


class SubscriptionState(StrEnum):
    """How far a stream has come with the last response of one type that it was sent."""

    REQUESTED = "requested"  # asked for, nothing sent yet
    SENT = "sent"
    ACKED = "acked"
    NACKED = "nacked"


@dataclass(frozen=True, slots=True)
class Serving:
    """The snapshot of an environment that an ADS process serves; `epoch` is 0 where it serves none. `refused`: a
    sentence that says why it does not serve a newer one, empty where it has none to refuse.
    """

    lineage: str = ""
    epoch: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaFact:
    """What an ADS process reports of itself.

    `age_s`: how many seconds ago it started.
    `stopping`: whether this is its last report and all its streams are closed.
    `serves`: what it serves, by environment key; None where it does not say.
    `place`: the value of `replica_place`; empty where it may share that with other processes.
    `begins`: whether this is its first report, so that it replaces the process that was at this place before.
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
    """A client that was seen `age_s` seconds ago. `id`: `identity.client_id` of its environment, identity and node id.
    `accountable`: the key of whoever is accountable for it when rows are limited per party (`xdscore.shares`).
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
    """The end of a stream, `age_s` seconds ago, with a cause that is written for operators."""

    id: str
    cause: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Interned:
    """A list that many rows share: the names of a subscription, or the contents of a response.

    `id`: a hash of the list.
    `count`: how many items it has.
    `packed`: the list, compressed.
    """

    id: str
    count: int
    packed: bytes


class SubscriptionSays(NamedTuple):
    """The state of a stream's subscription to one type (`word`), without times. These values are equal for thousands of
    clients while a fleet takes a change.

    `names`: the id of an `Interned` with the names it asks for.
    `sent`, `acked`: the versions on the wire that were last sent and last acknowledged; empty where there is none.
    `held`: the id of the `HeldRow` with what the client has; None where that is not known.
    """

    word: str
    names: str
    wildcard: bool
    state: SubscriptionState
    sent: str = ""
    acked: str = ""
    held: str | None = None


class SubscriptionFact(NamedTuple):
    """The subscription of a stream to one type as it is now. The ages say how many seconds ago a response was last sent
    and last acknowledged; None where that never happened. `held_age_s`: for how many seconds the client has had what it
    has.
    """

    stream: str
    says: SubscriptionSays
    sent_age_s: float | None = None
    acked_age_s: float | None = None
    held_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class MoveFact:
    """What these streams of one environment have of a type changed `age_s` seconds ago, from one set to another; both
    are ids of a `HeldRow`, the first None for a stream that had not said what it has.

    `streams`: the `stream_mark` of each, one behind the other; `count`: how many they are.
    """

    environment: str
    word: str
    from_set: str | None
    to_set: str
    streams: bytes
    count: int
    age_s: float


@dataclass(frozen=True, slots=True)
class NackFact:
    """A NACK that a client sent.

    `version`: of the refused response. `code`, `text`: the client's status code and its words.
    `resources`, `suspects`: the ids of the `Interned` lists of what the response held and of the suspects among them.
    `evidence`: on what ground these are suspects. `repeats`: how many equal NACKs it stands for.
    `kept`: the id of the list of what the client had acknowledged of the suspects; `healing`: whether it is sent again.
    `accountable`: the key of whoever is accountable for it when rows are limited per party (`xdscore.shares`).
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
    """The fact that a client acknowledged a content that is withheld from others and that it was sent as a trial
    (probe).
    """

    client: str
    word: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class FactBatch:
    """The facts that one transaction writes. What a fact refers to is in the same batch, or was written by an earlier
    one.
    """

    replica: ReplicaFact
    clients: tuple[ClientFact, ...] = ()
    streams: tuple[StreamFact, ...] = ()
    ends: tuple[StreamEnd, ...] = ()
    name_sets: tuple[Interned, ...] = ()
    held_sets: tuple[HeldRow, ...] = ()
    subscriptions: tuple[SubscriptionFact, ...] = ()
    moves: tuple[MoveFact, ...] = ()
    content_lists: tuple[Interned, ...] = ()
    nacks: tuple[NackFact, ...] = ()
    proven: tuple[ProvenContent, ...] = field(default=())
    probes: tuple[ProbeFact, ...] = ()
    tallies: tuple[Tallied, ...] = ()

    @property
    def keys(self) -> int:
        """The number of rows that the batch writes, which may be at most MAX_BATCH_KEYS."""
        answers = len(self.nacks) + len(self.proven) + len(self.probes) + len(self.tallies)
        return len(self.streams) + len(self.ends) + len(self.subscriptions) + answers


def replica_place(host: str, home: str, address: str, worker: str) -> str:
    """A hash that is the same for an ADS process and for the one that is started in its place, and differs from that of
    every other. `home`: its PARLEY_HOME; `worker`: which of the ADS processes of one server it is.
    """
    return blake2b(f"{host}\0{home}\0{address}\0{worker}".encode(), digest_size=HASH_CHARS // 2).hexdigest()


def intern_names(names: Iterable[str]) -> Interned:
    """A set of names in the form in which it is stored. Equal sets have equal ids."""
    return _interned(sorted(names))


def intern_contents(contents: Iterable[tuple[str, str]]) -> Interned:
    """The contents of a response in the form in which they are stored; `contents` are the (name, version) of each
    resource, in order.
    """
    return _interned([list(content) for content in contents])


def unpack_names(packed: bytes) -> tuple[str, ...]:
    """The names in the `packed` form of an `Interned`, sorted."""
    return tuple(json.loads(zlib.decompress(packed)))


def unpack_contents(packed: bytes) -> tuple[tuple[str, str], ...]:
    """The (name, version) of each resource in the `packed` form of an `Interned`, in order."""
    return tuple((name, version) for name, version in json.loads(zlib.decompress(packed)))


def _interned(values: list[str] | list[list[str]]) -> Interned:
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return Interned(blake2b(data, digest_size=HASH_CHARS // 2).hexdigest(), len(values), zlib.compress(data, level=1))


NO_NAMES = intern_names(())

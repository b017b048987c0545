"""What a build sees of the catalogue: one value per name. Pure; `state.catalog_state_read` fills it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from controlplane.catalog.choices import StagedState
from controlplane.catalog.withholding import Withholding
from xdscore.access import Effect
from xdscore.sides import RolloutTable
from xdscore.snapshot import Content, Entry, EntryKey, RemovedName, Served


@dataclass(frozen=True, slots=True)
class Staged:
    """What the stable side has of a name whose newest revision is staged, and how far that has come. `stable`: the
    revision that the stable side has, as if it were the newest; None: there was none before.
    """

    stable: "Head | None"
    state: StagedState


@dataclass(frozen=True, slots=True)
class Head:
    """One name of the catalogue: its newest revision (the head) and what can be served in its place.

    `content`: the content of the newest revision; None after a deletion.
    `quarantined`, `proven_quarantined`: the newest, or the proven, revision is in quarantine.
    `proven`: the content of the last revision that a client acknowledged; None without one.
    `revision`: the row id of the newest revision; a revision written later has a higher one.
    `references`: the resources that the newest revision refers to.
    `claims`, `proven_claims`: the addresses and domains that the newest, or the proven, revision wants to itself.
    `withholding`: while the newest revision is in quarantine, the clients that do not get it.
    `staged`: set while the stable side has another revision than the newest.
    `entry`: what a snapshot serves where nothing speaks against the newest revision.
    """

    key: EntryKey
    content: Content | None
    quarantined: bool = False
    proven: Content | None = None
    proven_quarantined: bool = False
    revision: int = 0
    references: tuple[EntryKey, ...] = ()
    claims: tuple[str, ...] = ()
    proven_claims: tuple[str, ...] = ()
    withholding: Withholding | None = None
    staged: Staged | None = None
    entry: Entry = field(init=False, compare=False)

    def __post_init__(self) -> None:
        entry = Served(self.content, self.fallback) if self.content is not None else RemovedName()
        object.__setattr__(self, "entry", entry)

    @property
    def fallback(self) -> Content | None:
        """The content to serve where the newest revision cannot be: the last that a client acknowledged. None where no
        client acknowledged any, or that one is in quarantine.
        """
        return None if self.proven_quarantined else self.proven

    @property
    def acknowledged(self) -> bool:
        """Whether a client acknowledged the content of the newest revision, and that content is not in quarantine."""
        return self.content is not None and self.content == self.fallback


@dataclass(frozen=True, slots=True)
class Moment:
    """A generation of an environment, with its lineage (the id under which snapshots are numbered) and the id of the
    change that was written at it, or of what a rollout moved. That id tells the generation from one with the same
    number that a restored database lost (decisions D5b).
    """

    lineage: str
    generation: int
    change: UUID | None


@dataclass(frozen=True, slots=True)
class CatalogState:
    """Everything that is written in an environment at one generation. `removed_complete`: `heads` holds every deleted
    name, not only the newest ones. `deep_validation`: a real Envoy is to check what is new.

    `staged`: the names whose newest revision is staged.
    `side`: who is on the candidate side; None while neither a rollout nor a rehearsal is open.
    `rehearsed`: of an open rehearsal, what it has of each of its names, which is in no other field. `rehearsal`: its
        public id; empty while none is open. `overdue`: it is open beyond its deadline, and left out here.
    """

    environment: str
    at: Moment
    built_generation: int
    heads: Mapping[EntryKey, Head]
    default_effect: Effect
    removed_complete: bool = True
    deep_validation: bool = False
    staged: frozenset[EntryKey] = frozenset()
    side: RolloutTable | None = None
    rehearsed: Mapping[EntryKey, Head] = field(default_factory=dict)
    rehearsal: str = ""
    overdue: bool = False

"""What a build sees of the catalogue: one value per name. Pure; `state.catalog_state_read` fills it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from controlplane.catalog.withholding import Withholding
from xdscore.access import Effect
from xdscore.snapshot import Content, Entry, EntryKey, RemovedName, Served


@dataclass(frozen=True, slots=True)
class Head:
    """One name of the catalogue: its newest revision and what it can fall back to.

    `content` is None after a deletion. `references` is what the head needs, `claims` what it wants to itself;
    `proven_claims` is what the proven revision wants. `revision` numbers the head revisions of an environment in the
    order of their writing. `entry` is what is served when nothing speaks against the head. `withholding`: of a head in
    quarantine, whom it is withheld from.
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
    entry: Entry = field(init=False, compare=False)

    def __post_init__(self) -> None:
        entry = Served(self.content, self.fallback) if self.content is not None else RemovedName()
        object.__setattr__(self, "entry", entry)

    @property
    def fallback(self) -> Content | None:
        """The content that can be served instead of the head: the last that a client has acknowledged; None without
        one.
        """
        return None if self.proven_quarantined else self.proven

    @property
    def acknowledged(self) -> bool:
        """Whether a client has acknowledged the head itself."""
        return self.content is not None and self.content == self.fallback


@dataclass(frozen=True, slots=True)
class Moment:
    """A generation of an environment, and the id of the change that was written then: by it a generation that a
    database lost and counted again is told from the first one (decisions D5b).
    """

    lineage: str
    generation: int
    change: UUID | None


@dataclass(frozen=True, slots=True)
class CatalogState:
    """An environment's whole catalogue at one moment.

    `removed_complete` says that `heads` holds every deleted name, and not only the newest ones; `deep_validation`, that
    an Envoy is to be asked about what is new.
    """

    environment: str
    at: Moment
    built_generation: int
    heads: Mapping[EntryKey, Head]
    default_effect: Effect
    removed_complete: bool = True
    deep_validation: bool = False

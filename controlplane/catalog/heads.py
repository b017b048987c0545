"""What a build sees of the catalogue: one value per name. Pure; `state.catalog_state_read` fills it."""

from dataclasses import dataclass

from xdscore.access import Effect
from xdscore.snapshot import Content, EntryKey


@dataclass(frozen=True, slots=True)
class Head:
    """One name of the catalogue: what it says now and what it can fall back to. `content` is None after a deletion."""

    key: EntryKey
    content: Content | None
    quarantined: bool
    proven: Content | None
    proven_quarantined: bool


@dataclass(frozen=True, slots=True)
class CatalogState:
    """An environment's whole catalogue at one generation."""

    environment: str
    generation: int
    built_generation: int
    heads: tuple[Head, ...]
    default_effect: Effect

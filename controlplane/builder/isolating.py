"""Finds the types of an environment that cannot be built, on either side, and what is published of them (reliability
F29).
"""

from collections.abc import Mapping

from controlplane.builder.stages.isolation import NOTHING_ISOLATED, Isolation, failing_types
from controlplane.builder.stages.sides import candidate_heads, stable_heads, with_rehearsed
from controlplane.catalog.heads import CatalogState
from controlplane.snapshots.selectors import candidate_diff, entries_published, rollout_table
from xdscore.snapshot import Entry, EntryKey


def isolation_of(state: CatalogState) -> Isolation:
    """The types that fail even when they are built alone, to be kept as they are published on both sides."""
    stable = stable_heads(state.heads, state.staged)
    failed = failing_types(stable)
    if not failed and state.side is not None:
        heads = with_rehearsed(state.heads, state.rehearsed, {})
        failed = failing_types(candidate_heads(heads, state.staged | (state.rehearsed.keys() & heads.keys()), {}))
    if not failed:
        return NOTHING_ISOLATED
    return Isolation(failed, stable, entries_published(environment_key=state.environment), _candidate(state))


def _candidate(state: CatalogState) -> Mapping[EntryKey, Entry | None]:
    """In which entries the candidate side of the open rollout differs, as it is published."""
    table = rollout_table(environment_key=state.environment)
    if table is None or state.side is None or table.id != state.side.id:
        return {}
    return candidate_diff(environment_key=state.environment)

"""Reads everything a build needs as of one moment: one transaction, one generation (decisions D6)."""

from dataclasses import dataclass

from django.db import transaction

from controlplane.access.selectors import access_table_read
from controlplane.catalog.heads import CatalogState
from controlplane.catalog.state import catalog_state_read
from controlplane.database.aliases import READER
from xdscore.access import AccessTable


@dataclass(frozen=True, slots=True)
class Inputs:
    """An environment's catalogue and access rules at one generation."""

    state: CatalogState
    access: AccessTable


def inputs_read(*, environment_id: int, known: CatalogState | None) -> Inputs | None:
    """The catalogue and access rules to build from now; None when the environment is gone. `known`: the catalogue as it
    was read before.
    """
    with transaction.atomic(using=READER):
        state = catalog_state_read(environment_id=environment_id, known=known)
        if state is None:
            return None
        access = access_table_read(environment_id=environment_id, default=state.default_effect, using=READER)
        return Inputs(state, access)

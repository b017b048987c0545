"""Which clients are labelled by one act, by whom, and how many at most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from controlplane.accounts.principal import Role
from controlplane.clients.models import Client
from controlplane.common.errors import InputInvalid, InputTooLarge
from xdscore.labels import LabelEdits

LABELLER: Final = Role.OPERATOR
"""The role that labels the clients of an environment."""
MAX_LABELLED: Final = 1_000
"""How many clients are labelled at once."""


@dataclass(frozen=True, slots=True)
class ClientsLabelled:
    """What an act did. `clients`: how many were meant; `moved`: the ids of those that got other labels."""

    clients: int
    moved: tuple[str, ...]


def clients_chosen(rows: QuerySet[Client]) -> tuple[str, ...]:
    """The ids of the clients of `rows`. Raises InputTooLarge, which says how many there are, where that is too many."""
    found = list(rows.order_by("pk").values_list("pk", flat=True)[: MAX_LABELLED + 1])
    if len(found) > MAX_LABELLED:
        raise _too_many(rows.count())
    return tuple(found)


def labelling_check(clients: Sequence[str], edits: LabelEdits) -> None:
    """Raise InputInvalid where the act lacks something, and InputTooLarge where too many clients are meant."""
    if not clients:
        raise InputInvalid("No client is chosen. Nothing was changed.")
    if len(clients) > MAX_LABELLED:
        raise _too_many(len(clients))
    if not edits:
        raise InputInvalid("Say which labels to set or remove, such as team=pay or team-. Nothing was changed.")


def _too_many(count: int) -> InputTooLarge:
    """The error for more clients than are labelled at once."""
    return InputTooLarge(
        f"{count:,} clients are meant; at most {MAX_LABELLED:,} at once are allowed. Choose fewer, by a narrower "
        "filter or one part after the other. Nothing was changed."
    )

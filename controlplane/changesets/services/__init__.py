"""The writes of change sets. Each is one transaction that locks the environment first, and the change set after it."""

from controlplane.changesets.services.drafting import (
    SetChanges,
    Stays,
    Times,
    change_set_create,
    change_set_delete,
    change_set_edit,
)
from controlplane.changesets.services.publishing import change_set_publish, change_set_schedule, change_sets_tick
from controlplane.changesets.services.reviewing import (
    Place,
    change_set_approve,
    change_set_cancel,
    change_set_comment,
    change_set_reject,
    change_set_submit,
)

__all__ = [
    "Place",
    "SetChanges",
    "Stays",
    "Times",
    "change_set_approve",
    "change_set_cancel",
    "change_set_comment",
    "change_set_create",
    "change_set_delete",
    "change_set_edit",
    "change_set_publish",
    "change_set_reject",
    "change_set_schedule",
    "change_set_submit",
    "change_sets_tick",
]

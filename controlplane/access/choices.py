"""The closed sets of access, as its tables and services spell them."""

from enum import Enum


class EditSubject(Enum):
    """Whether an edit in the history changed an access rule or a client group."""

    RULE = "rule"
    GROUP = "group"


class EditAction(Enum):
    """Whether an edit in the history created, updated or deleted a rule or group."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"

"""The closed sets of access, as its tables and services spell them."""

from enum import Enum


class EditSubject(Enum):
    """What an edit is about."""

    RULE = "rule"
    GROUP = "group"


class EditAction(Enum):
    """What an edit did."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"

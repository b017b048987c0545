"""The roles that somebody can have. Their words stand in variables, tables and answers. Pure."""

from enum import Enum


class Role(Enum):
    """The roles in which somebody acts, and the rights that a token carries (decisions U7)."""

    VIEWER = "viewer"
    REPORTER = "reporter"
    REHEARSER = "rehearser"
    EDITOR = "editor"
    ACCESS_EDITOR = "access-editor"
    OPERATOR = "operator"
    ADMIN = "admin"

"""What stands for somebody wherever something is counted, kept or told apart: a row's primary key, never a name.

A name is chosen by whoever has it and may be another's elsewhere, or tomorrow; a primary key is neither. Pure, and of
no room: every one of them speaks of who acts.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

MAX_PRINCIPAL_CHARS: Final = 32  # "installation", or "token:" and the 19 digits of a primary key


class PrincipalKind(Enum):
    """The kinds of principals, which are what can act."""

    USER = "user"
    TOKEN = "token"  # noqa: S105 - a word
    SYSTEM = "system"
    INSTALLATION = "installation"


@dataclass(frozen=True, slots=True)
class PrincipalId:
    """The id of a principal, which never changes: `number` is the primary key of the user or token, and 0 of what there
    is one of.

    There is no way from a name to one of these (TypeError), so what takes one cannot be given a name.
    """

    kind: PrincipalKind
    number: int = 0

    def __post_init__(self) -> None:
        given: tuple[object, object] = (
            self.kind,
            self.number,
        )  # types are checked before; this, always
        if not isinstance(given[0], PrincipalKind) or not isinstance(given[1], int):
            raise TypeError("a principal is a kind and a primary key, and never a name")

    def __str__(self) -> str:
        """The id as it is stored and told: `user:12`, `token:34`, `system`, `installation`."""
        return f"{self.kind.value}:{self.number}" if self.number else self.kind.value


class Actor(Protocol):
    """Somebody in the audit log: a name for people to read, and an id; None for somebody of whom nothing is known."""

    @property
    def id(self) -> PrincipalId | None:
        """The id of who acted; None where nothing is known."""

    @property
    def name(self) -> str:
        """The name of who acted, as it was then."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name and id for the audit log, without any rights."""

    name: str
    id: PrincipalId | None

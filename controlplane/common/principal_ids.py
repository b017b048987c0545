"""What stands for somebody wherever something is counted, kept or told apart: a row's primary key, never a name.

A name is chosen by whoever has it and may be another's elsewhere, or tomorrow; a primary key is neither. Pure, and of
no room: every one of them speaks of who acts.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

MAX_PRINCIPAL_CHARS: Final = 32  # "installation", or "token:" and the 19 digits of a primary key


class PrincipalKind(Enum):
    """The kinds of principals: who or what can act in Parley."""

    USER = "user"
    TOKEN = "token"  # noqa: S105 - a word
    SYSTEM = "system"
    INSTALLATION = "installation"


@dataclass(frozen=True, slots=True)
class PrincipalId:
    """The id of a principal, which never changes. `number`: the primary key of the user or token; 0 for a kind of which
    there is only one.

    It cannot be made from a name (TypeError), so that code which takes one cannot be given a name.
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
        """The id as text, in the database and in answers: `user:12`, `token:34`, `system`, `installation`."""
        return f"{self.kind.value}:{self.number}" if self.number else self.kind.value


def principal_id_of(text: str) -> PrincipalId | None:
    """The id that `str` of a PrincipalId wrote; None for any other text."""
    word, _, number = text.partition(":")
    kind = next((kind for kind in PrincipalKind if kind.value == word), None)
    if kind is None or (number and not number.isdecimal()):
        return None
    found = PrincipalId(kind, int(number or 0))
    return found if str(found) == text else None


class Actor(Protocol):
    """Whoever did something that the audit log records: a name for people to read, and an id."""

    @property
    def id(self) -> PrincipalId | None:
        """The id of who acted; None where nothing but a name is known."""

    @property
    def name(self) -> str:
        """The name of who acted, as it was then."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name, with an id where one is known, for the audit log. It has no rights."""

    name: str
    id: PrincipalId | None

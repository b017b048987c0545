"""What is told of sets of descriptors."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SetRow:
    """A set of descriptors. `is_own`: an operator added it; otherwise Parley brings it along and `added_by` and
    `added_at` are empty.
    """

    name: str
    files: int
    messages: int
    is_own: bool
    digest: str = ""
    added_by: str = ""
    added_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a stored resource that a schema does not know. `place`: a JSON pointer; `what`: the number of a field,
    or the name of a type.
    """

    environment: str
    type: str
    name: str
    place: str
    what: str

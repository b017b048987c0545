"""What history is made of, as values. Pure."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, NamedTuple

MINUTE_S: Final = 60
LONG_S: Final = 600
"""The length of the rows that take the place of those of a minute when they are old."""

# Beyond so many kinds of clients in a minute of an environment, and in a picture, the rest is told as one.
MAX_KINDS: Final = 20
REST: Final = "other"
KIND_CHARS: Final = 32


class What(StrEnum):
    """What is drawn over time."""

    CLIENTS = "clients"
    NACKS = "nacks"
    ERRORS = "errors"


class Tallied(NamedTuple):
    """A number of NACKs that clients sent, or of resource errors that they were told, `age_s` seconds ago.

    `environment`: its key. `what`: NACKS or ERRORS. `word`: the resource type.
    `detail`: of NACKs the kind of the client that sent them, of errors their code.
    """

    environment: str
    what: What
    word: str
    detail: str
    times: int
    age_s: float


@dataclass(frozen=True, slots=True)
class FleetStates:
    """How many clients of an environment stand in each state, each client in the first of these that fits one of its
    subscriptions; without an open stream it is disconnected.
    """

    nacked: int = 0
    sent: int = 0
    requested: int = 0
    acked: int = 0
    disconnected: int = 0


STATES: Final = tuple(each.name for each in fields(FleetStates))

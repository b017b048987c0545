"""What a client has of one resource, as every door says it: the states of interfaces.md section 8. Pure."""

from enum import StrEnum
from typing import NamedTuple


class HoldingState(StrEnum):
    """How far a client has come with one resource that it asks for."""

    ACKED = "ACKED"  # it acknowledged what it is to have
    SENT = "SENT"  # it did not answer yet
    NACKED = "NACKED"  # it refused what it is to have
    ERROR_SENT = "ERROR_SENT"  # it was told why it does not get the resource
    SILENT = "SILENT"  # there is nothing to send, and it is too old to be told why
    REQUESTED = "REQUESTED"  # nothing was sent yet
    UNKNOWN = "UNKNOWN"  # nobody can know


class Holding(NamedTuple):
    """What a client has of one resource.

    `version`: of the content that it was sent or refused, which in state ACKED it has; empty where there is none.
    `acked`: the version of the content that it goes on with; empty where it has none, or nobody knows.
    `code`, `message`: the error that it was told, or would be if it were not too old (SILENT); empty in other states.
    """

    state: HoldingState
    version: str = ""
    acked: str = ""
    code: str = ""
    message: str = ""


REQUESTED = Holding(HoldingState.REQUESTED)
"""What a client has of a resource that it asked for and was sent nothing of."""

"""What an invitation says, and what may stand in one. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from controlplane.common.roles import Role

DEFAULT_DAYS: Final = 7
MAX_DAYS: Final = 30
MAX_ROLES: Final = 20


@dataclass(frozen=True, slots=True)
class Given:
    """A role that an invitation gives. `environment`: its key; empty: all environments."""

    role: Role
    environment: str


class State(StrEnum):
    """What has become of an invitation. `VOID`: it is open, and gives nothing, because who invites may not any more."""

    OPEN = "open"
    VOID = "void"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


def state_of(*, accepted: bool, withdrawn: bool, expires_at: datetime, inviter_may: bool, now: datetime) -> State:
    """The state of an invitation at the time `now`."""
    if accepted:
        return State.ACCEPTED
    if withdrawn:
        return State.WITHDRAWN
    if expires_at <= now:
        return State.EXPIRED
    return State.OPEN if inviter_may else State.VOID


def ends_at(days: int, now: datetime) -> datetime:
    """When a link ends that is made at the time `now`."""
    return now + timedelta(days=days)


def problems_of(*, username: str, address: str, roles: Collection[Given], days: int) -> list[str]:
    """Everything that keeps this from being an invitation, each as a sentence; whether name and address are well formed
    is not looked at.
    """
    found = []
    if not username and not address:
        found.append("Say whom you invite: a user name, a mail address, or both.")
    if not roles:
        found.append("An invitation gives at least one role.")
    if len(roles) > MAX_ROLES:
        found.append(f"An invitation gives at most {MAX_ROLES} roles.")
    if not 1 <= days <= MAX_DAYS:
        found.append(f"A link lasts from 1 to {MAX_DAYS} days.")
    return found

"""Reads invitations: the list for who administers, and the one that a link opens."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from controlplane.accounts.people import ids_who_may
from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import principal_by_id
from controlplane.accounts.token_text import token_digest
from controlplane.catalog.selectors import environment_list
from controlplane.common.principal_ids import PrincipalId, PrincipalKind, principal_id_of
from controlplane.invitations.models import Invitation
from controlplane.invitations.values import Given, State, state_of


@dataclass(frozen=True, slots=True)
class Invited:
    """An invitation as it is shown. `roles`: what it gives now; a role in an environment that was deleted since is not
    among them. `inviter`: the name of who invites.
    """

    id: int
    username: str
    address: str
    roles: tuple[Given, ...]
    inviter: str
    reason: str
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None
    accepted_by: str
    withdrawn_at: datetime | None
    state: State

    @property
    def waits(self) -> bool:
        """Whether the invitation can still be withdrawn or sent anew: it was neither accepted nor withdrawn."""
        return self.state in (State.OPEN, State.VOID, State.EXPIRED)


def invitation_list() -> QuerySet[Invitation]:
    """Every invitation, newest first."""
    return Invitation.objects.order_by("-pk")


class Reading:
    """Makes `Invited` of rows, with what is true of all of them read once."""

    def __init__(self) -> None:
        self._administer = ids_who_may(role=Role.ADMIN, environment="")
        self._environments = {state.id for state in environment_list()}

    def invited(self, row: Invitation) -> Invited:
        """The invitation that is stored in this row."""
        creator = principal_id_of(row.creator)
        may = creator is not None and (creator.kind is PrincipalKind.SYSTEM or creator.number in self._administer)
        return invited_of(row, environments=self._environments, inviter_may=may)


def invitation_behind(token: str) -> Invited | None:
    """The invitation that this token opens now, void or not; None where there is none, or it was accepted, withdrawn or
    has expired.
    """
    row = Invitation.objects.filter(
        digest=token_digest(token), accepted_at=None, withdrawn_at=None, expires_at__gt=timezone.now()
    ).first()
    if row is None:
        return None
    environments = {state.id for state in environment_list()}
    return invited_of(row, environments=environments, inviter_may=inviter_of(row) is not None)


def inviter_of(row: Invitation) -> Principal | None:
    """Whoever invites, as long as they may: they administer all environments now; None where they do not."""
    creator: PrincipalId | None = principal_id_of(row.creator)
    found = principal_by_id(creator) if creator is not None else None
    return found if found is not None and found.may(Role.ADMIN, None) else None


def invited_of(row: Invitation, *, environments: set[int], inviter_may: bool) -> Invited:
    """The invitation in this row. `environments`: the ids of those that there are."""
    return Invited(
        row.pk,
        row.username,
        row.address,
        tuple(
            Given(Role(each["role"]), each["environment"])
            for each in row.roles
            if each["id"] is None or each["id"] in environments
        ),
        row.created_by,
        row.reason,
        row.created_at,
        row.expires_at,
        row.accepted_at,
        row.accepted_by,
        row.withdrawn_at,
        state_of(
            accepted=row.accepted_at is not None,
            withdrawn=row.withdrawn_at is not None,
            expires_at=row.expires_at,
            inviter_may=inviter_may,
            now=timezone.now(),
        ),
    )

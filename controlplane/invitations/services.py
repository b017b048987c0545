"""Makes invitations, ends them, and lets somebody accept one: once, and with no more than who invites may give then.

The link's token is told once, to whoever makes the link; it stands in no log. A link that is sent anew has another
token, and the old one opens nothing from then on.
"""

import secrets
from collections.abc import Sequence
from typing import Final

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.logins import local_sign_in_is_for_everybody
from controlplane.accounts.people import name_problem, password_problems, person_create
from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import user_actor
from controlplane.accounts.token_text import token_digest
from controlplane.accounts.vouching import from_provider
from controlplane.catalog.role_rights import role_grant
from controlplane.catalog.selectors import environment_list
from controlplane.catalog.services.environments import environments_locked
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, NotFound
from controlplane.common.principal_ids import Actor, principal_id_of
from controlplane.invitations.models import Invitation
from controlplane.invitations.selectors import inviter_of
from controlplane.invitations.values import Given, ends_at, problems_of
from controlplane.journal.services import audit_record
from controlplane.oidc.sign_ins import principal_recheck
from xdscore.codes import shown

_TOKEN_BYTES: Final = 32
_MAX_ADDRESS_CHARS: Final = 254  # RFC 5321, and the column
_MAX_ID: Final = 2**63
CLOSED: Final = (
    "This link opens nothing: it was used, withdrawn or replaced by a newer one, it has expired, or a part of it is "
    "missing. Ask whoever invited you for another."
)
VOID: Final = (
    "{inviter}, who invited you, may not invite anybody now: they administer no more, or the identity provider does "
    "not vouch for them at this moment. Nothing was made. Ask them, or another administrator."
)


@transaction.atomic
def invitation_make(
    *,
    username: str,
    address: str,
    roles: Sequence[Given],
    days: int,
    actor: Principal,
    reason: str,
    request_id: str = "",
) -> tuple[Invitation, str]:
    """Store an invitation. Returns its row and the token of its link, which is stored only as a hash. The caller checks
    that the actor administers all environments. Raises InputInvalid with everything that is wrong, and Conflict for a
    name that somebody has.
    """
    problems = problems_of(username=username, address=address, roles=roles, days=days)
    if username and (problem := name_problem(username)):
        problems.append(problem)
    if address and not _is_address(address):
        problems.append(f"'{shown(address)}' is no mail address.")
    ids = {state.key: state.id for state in environment_list()}
    unknown = dict.fromkeys(each.environment for each in roles if each.environment and each.environment not in ids)
    problems += [f"There is no environment '{shown(key)}'." for key in unknown]
    if problems:
        raise InputInvalid(f"{' '.join(problems)} Nothing was changed.")
    if username and User.objects.filter(username=username).exists():
        raise Conflict(f"There is somebody called '{username}' already: give them roles. Nothing was changed.")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    now = timezone.now()
    row = Invitation.objects.create(
        username=username,
        address=address,
        roles=[
            {"role": each.role.value, "environment": each.environment, "id": ids.get(each.environment)}
            for each in dict.fromkeys(roles)
        ],
        reason=reason,
        digest=token_digest(token),
        created_by=actor.name,
        creator=str(actor.id),
        created_at=now,
        days=days,
        expires_at=ends_at(days, now),
    )
    _record("invitation.made", row, actor, reason, request_id)
    return row, token


@transaction.atomic
def invitation_renew(
    *, invitation_id: int, actor: Principal, reason: str, request_id: str = ""
) -> tuple[Invitation, str]:
    """Make another link for an invitation that waits; the link until now opens nothing any more. Whoever does it is who
    invites from then on. Returns the row and the token of the new link. Raises NotFound or Conflict.
    """
    row = _waiting(invitation_id)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    row.digest, row.expires_at = token_digest(token), ends_at(row.days, timezone.now())
    row.created_by, row.creator = actor.name, str(actor.id)
    row.save(update_fields=["digest", "expires_at", "created_by", "creator"])
    _record("invitation.renewed", row, actor, reason, request_id)
    return row, token


@transaction.atomic
def invitation_withdraw(*, invitation_id: int, actor: Principal, reason: str, request_id: str = "") -> Invitation:
    """End an invitation that waits: its link opens nothing any more. Raises NotFound or Conflict."""
    row = _waiting(invitation_id)
    row.withdrawn_at = timezone.now()
    row.save(update_fields=["withdrawn_at"])
    _record("invitation.withdrawn", row, actor, reason, request_id)
    return row


def invitation_accept(*, token: str, username: str, password: str, again: str, request_id: str = "") -> str:
    """Make an account with this password and the roles of the invitation that the token opens; returns its name.
    `username` counts where the invitation names nobody; `again` must equal `password`. Raises NotFound for a token that
    opens nothing, Forbidden where who invites may not any more, InputInvalid with everything that is wrong, and
    Conflict for a name that somebody has. Not within a transaction.
    """
    _inviter_recheck(token)
    with transaction.atomic():
        row, inviter = _opened(token)
        if not local_sign_in_is_for_everybody():
            raise Conflict("People sign in by the identity provider here, and not by a password. Nothing was made.")
        name = row.username or username
        problems = [problem] if (problem := name_problem(name)) else []
        problems += password_problems(User(username=name), password, again)
        if problems:
            raise InputInvalid(f"{' '.join(problems)} Nothing was made.")
        why = f"invitation {row.pk}: {row.reason}"
        person = person_create(username=name, password=password, actor=inviter, reason=why, request_id=request_id)[0]
        _give(row, inviter, person.id, request_id)
        _accepted(row, User.objects.get(pk=person.id), request_id)
    return name


def invitation_accept_as(*, token: str, user: User, request_id: str = "") -> None:
    """Give the roles of the invitation that the token opens to somebody who is signed in by the identity provider.
    Raises NotFound for a token that opens nothing, Forbidden where who invites may not any more, and Conflict for
    anybody else. Not within a transaction.
    """
    _inviter_recheck(token)
    with transaction.atomic():
        row, inviter = _opened(token)
        if not from_provider(user.pk):
            raise Conflict("You are signed in with an account of Parley's own. Sign out, and open the link again.")
        if row.username not in ("", user.get_username()):
            raise Conflict(
                f"This invitation is for '{row.username}', and you are signed in as '{user.get_username()}'. Ask "
                f"{row.created_by} for one in your name."
            )
        _give(row, inviter, user.pk, request_id)
        _accepted(row, user, request_id)


def _opened(token: str) -> tuple[Invitation, Principal]:
    """The invitation that this token opens, locked until the transaction ends, and who invites. Raises NotFound, and
    Forbidden where who invites may not any more.
    """
    row = (
        Invitation.objects.select_for_update()
        .filter(digest=token_digest(token), accepted_at=None, withdrawn_at=None, expires_at__gt=timezone.now())
        .first()
    )
    if row is None:
        raise NotFound(CLOSED)
    inviter = inviter_of(row)
    if inviter is None:
        raise Forbidden(VOID.format(inviter=row.created_by))
    return row, inviter


def _inviter_recheck(token: str) -> None:
    """Have the identity provider asked about who invites, where its word is old; waits for it outside of any
    transaction.
    """
    creator = Invitation.objects.filter(digest=token_digest(token)).values_list("creator", flat=True).first()
    if creator is not None and (found := principal_id_of(creator)) is not None:
        principal_recheck(found)


def _give(row: Invitation, inviter: Principal, user_id: int, request_id: str) -> None:
    """Give the roles of an invitation, but those in environments that were deleted since."""
    environments_locked(keys=[each["environment"] for each in row.roles if each["environment"]])
    there = {state.id for state in environment_list()}
    for each in row.roles:
        if each["id"] is None or each["id"] in there:
            role_grant(
                user_id=user_id,
                role=Role(each["role"]),
                environment=each["environment"],
                actor=inviter,
                by_superuser=False,
                reason=f"invitation {row.pk}: {row.reason}",
                request_id=request_id,
            )


def _accepted(row: Invitation, user: User, request_id: str) -> None:
    row.accepted_at, row.accepted_by = timezone.now(), user.get_username()
    row.save(update_fields=["accepted_at", "accepted_by"])
    _record("invitation.accepted", row, user_actor(user), row.reason, request_id)


def _waiting(invitation_id: int) -> Invitation:
    """The invitation with this id, locked until the transaction ends. Raises NotFound, and Conflict where it was
    accepted or withdrawn.
    """
    found = Invitation.objects.select_for_update().filter(pk=invitation_id) if invitation_id < _MAX_ID else None
    row = found.first() if found is not None else None
    if row is None:
        raise NotFound("There is no such invitation. Nothing was changed.")
    if row.accepted_at is not None:
        raise Conflict(f"'{shown(row.accepted_by)}' has accepted it already. Nothing was changed.")
    if row.withdrawn_at is not None:
        raise Conflict("It was withdrawn already: make another. Nothing was changed.")
    return row


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= _MAX_ADDRESS_CHARS


def _record(verb: str, row: Invitation, actor: Actor, reason: str, request_id: str) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=f"invitation/{row.pk}",
        request_id=request_id,
        detail={
            "reason": reason,
            "username": row.username,
            "address": row.address,
            "roles": [{"role": each["role"], "environment": each["environment"]} for each in row.roles],
            "by": row.created_by,
            "until": row.expires_at.isoformat(timespec="seconds"),
        },
    )

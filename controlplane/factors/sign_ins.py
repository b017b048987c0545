"""A sign-in between its two steps: the password was right, and nobody is signed in yet.

What a session keeps of it opens nothing but the page that asks for the second factor. It has a session key of its own,
ends after ten minutes, and with a change of the password.
"""

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from controlplane.accounts.logins import local_sign_in_allowed

LASTS_S: Final = 600
_KEY: Final = "half_signed_in"
_PROVED_BY: Final = "second_factor"


@dataclass(frozen=True, slots=True)
class HalfSignIn:
    """A sign-in whose password was right. `leads_to`: the page of Parley's own to go to after it."""

    user: User
    leads_to: str


def half_begin(session: SessionBase, user: User, *, leads_to: str) -> None:
    """Keep in a session that this user's password was right. Whatever the session held before is gone, and its key is
    another: nobody who knew that one, or planted it, gets any further by it.
    """
    session.flush()
    session[_KEY] = [user.pk, user.get_session_auth_hash(), timezone.now().timestamp(), leads_to]


def half_of(session: SessionBase) -> HalfSignIn | None:
    """The sign-in in this session whose password was right; None without one, after ten minutes, and where the user may
    not sign in by that password any more.
    """
    kept = session.get(_KEY)
    if not isinstance(kept, list):
        return None
    user_id, mark, began_at, leads_to = kept
    if not 0 <= timezone.now().timestamp() - began_at < LASTS_S:
        return None
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), mark):
        return None
    return HalfSignIn(user, leads_to) if local_sign_in_allowed(user) else None


def half_end(session: SessionBase) -> None:
    """Forget the sign-in in this session, because it is complete or was given up."""
    session.pop(_KEY, None)


def factor_note(session: SessionBase) -> None:
    """Note in a session that a second factor was proved in it."""
    session[_PROVED_BY] = True


def factor_noted(session: SessionBase) -> bool:
    """Whether a second factor was proved in this session."""
    return session.get(_PROVED_BY) is True

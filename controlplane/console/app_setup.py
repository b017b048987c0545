"""An authenticator app that is being set up: the secret that a session keeps until a code of it was right."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import segno
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase

from controlplane.accounts.logins import Caller
from controlplane.common.errors import InputInvalid
from controlplane.factors.sealing import secret_carried, secret_carry
from controlplane.factors.services import app_add, app_secret_make
from controlplane.factors.values import app_uri, grouped

_KEY: Final = "authenticator_app_setup"
_GONE: Final = "The app is not being set up in this session any more. Begin again. Nothing was changed."
_SCALE: Final = 4  # pixels of a dot: 45 dots and their border are as wide as a card


@dataclass(frozen=True, slots=True)
class AppSetup:
    """What somebody gives their authenticator app: the secret as text, with blanks, which apps read over; or a QR code
    as the URL of an image.
    """

    secret: str = field(repr=False)
    image: str = field(repr=False)


def setup_begin(session: SessionBase, user: User) -> None:
    """Keep a new secret in the session, encrypted."""
    session[_KEY] = secret_carry(user.pk, app_secret_make())


def setup_of(session: SessionBase, user: User) -> AppSetup | None:
    """The authenticator app that this session sets up; None where it sets up none."""
    secret = _secret(session, user)
    if not secret:
        return None
    host = str(urlsplit(settings.PARLEY.public_url).hostname)
    code = segno.make_qr(app_uri(secret, username=user.get_username(), issuer=f"Parley {host}"), error="m")
    # White in both themes: cameras look for dark on light.
    return AppSetup(grouped(secret, by=" "), code.svg_data_uri(scale=_SCALE, light="white"))


def setup_finish(session: SessionBase, user: User, code: str, *, caller: Caller) -> tuple[str, ...]:
    """Make the app that this session sets up a second factor, because a code of it is right. Returns recovery codes to
    be shown once, where it is the first one. Raises InputInvalid.
    """
    secret = _secret(session, user)
    if not secret:
        raise InputInvalid(_GONE)
    codes = app_add(user=user, secret=secret, code=code, caller=caller)
    setup_end(session)
    return codes


def setup_end(session: SessionBase) -> None:
    """Forget the app that this session sets up."""
    session.pop(_KEY, None)


def _secret(session: SessionBase, user: User) -> str:
    kept = session.get(_KEY)
    try:
        return secret_carried(user.pk, kept) if isinstance(kept, str) else ""
    except ValueError:  # under a key that is not configured any more, or another person's
        return ""

"""The link of an invitation, and the mail that brings it."""

from typing import Final

from django.conf import settings

from controlplane.invitations.models import Invitation
from controlplane.notify.mailing import letter_send

PATH: Final = "invitation/"
_SUBJECT: Final = "You are invited to Parley"
_TEXT: Final = """\
{inviter} invites you to operate Parley at {home}

{link}

The link is good once, until {until:%Y-%m-%d %H:%M} UTC, for whoever has it: keep it to yourself.
If you expected no such mail, do nothing: without the link being used nothing comes of it.
"""


def link_of(token: str) -> str:
    """The URL that opens the invitation with this token."""
    return f"{settings.PARLEY.public_url}/{PATH}{token}"


def invitation_mail(row: Invitation, token: str) -> str:
    """Send the link of an invitation to its address. Returns why the mail server did not take it, as a sentence; empty
    where it did. Not within a transaction.
    """
    text = _TEXT.format(
        inviter=row.created_by, home=settings.PARLEY.public_url, link=link_of(token), until=row.expires_at
    )
    return letter_send(to=row.address, subject=_SUBJECT, text=text)

"""Tells people by mail what became of their sign-in, so that somebody who did not do it learns of it."""

from typing import Final

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction

from controlplane.accounts.logins import Caller
from controlplane.accounts.selectors import user_actor
from controlplane.common.errors import InputInvalid
from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.journal.services import audit_record

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_MAX_ADDRESS_CHARS: Final = 254  # RFC 5321, and the column


def person_tell(user: User, happened: str, *, address: str = "") -> None:
    """Send a person a mail that says what happened to their sign-in, as a sentence; to another address than that of
    their account, where one is given. Nothing where there is no mail server or no address; what fails stands in the
    log. Not within a transaction.
    """
    to = address or user.email
    if settings.PARLEY.mail is None or not to:
        return
    before_waiting_outside()
    url = settings.PARLEY.public_url
    text = (
        f"{happened}\n\nAccount: {user.get_username()}\nParley: {url}\n\n"
        "If neither you nor your administrator did this: change your password under Your account, and tell an "
        "administrator. The audit log has who did it, and from where.\n"
    )
    try:
        EmailMessage("Your sign-in to Parley was changed", text, to=[to]).send()
    except (OSError, ValueError) as error:  # smtplib's own are the former; an address that is none makes the latter
        log.warning("second_factor.mail_failed", user=user.get_username(), reason=type(error).__name__)


def address_change(*, user: User, address: str, caller: Caller) -> None:
    """Store the address at which a person is told; empty: they are not told. The address of before is told, too, so
    that nobody is made deaf in silence. Raises InputInvalid.
    """
    address, before = address.strip(), user.email
    if address:
        try:
            validate_email(address)
        except ValidationError:
            address = "\0"
        if len(address) > _MAX_ADDRESS_CHARS or not address.isprintable():
            raise InputInvalid("That is no mail address, such as ana@example.org. Nothing was changed.")
    if address == before:
        return
    user.email = address
    with transaction.atomic():
        user.save(update_fields=["email"])
        audit_record(
            actor=user_actor(user),
            verb="user.address-changed",
            subject=user.get_username(),
            request_id=caller.request_id,
            detail={"address": caller.address},
        )
    person_tell(user, "You are told at this address from now on what becomes of your sign-in.")
    if before:
        person_tell(user, "You are not told at this address any more what becomes of your sign-in.", address=before)

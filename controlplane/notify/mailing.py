"""Mail as Django sends it, except that all of it ends at one deadline: names, connection, TLS and every line."""

import smtplib
import socket
import ssl
from functools import cached_property, partial
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend as DjangoBackend
from django.core.mail.utils import DNS_NAME

from controlplane.clients.foreign_text import one_line
from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.outside import reaching
from controlplane.outside.reaching import Deadline, addresses_of, connected, lookups, tls_context

_FAILURE_CHARS = 300


class EmailBackend(DjangoBackend):
    """Django's backend for mail by SMTP, all of whose waiting ends at one deadline: the given one, else that of a
    notification.
    """

    def __init__(self, *args: Any, deadline: Deadline | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.deadline = deadline or Deadline(settings.PARLEY.limits.delivery_timeout_ms / 1_000)

    @property
    def connection_class(self) -> Any:
        """A function that opens the SMTP connection and gives up at the deadline."""
        return partial(_SmtpTls if self.use_ssl else _Smtp, deadline=self.deadline)

    @cached_property
    def ssl_context(self) -> ssl.SSLContext:
        """A TLS context whose connections give up at the deadline."""
        return tls_context()

    def open(self) -> bool | None:
        """Open a connection to the mail server. Returns None, without doing anything, where one is open already. Raises
        OSError.
        """
        # The name of this machine is looked up, too, once; Django keeps it.
        lookups.answer(DNS_NAME, DNS_NAME.get_fqdn, self.deadline)
        return super().open()


def letter_send(*, to: str, subject: str, text: str) -> str:
    """Send one mail to one address now, within PARLEY_LIMIT_DELIVERY_TIMEOUT_MS. Returns why the mail server did not
    take it, as a sentence; empty where it did. Raises RuntimeError within a transaction.
    """
    before_waiting_outside()
    if settings.PARLEY.mail is None:
        return "There is no mail server: set PARLEY_MAIL_URL."
    try:
        with get_connection() as connection:
            EmailMessage(subject, text, to=[to], connection=connection).send()
    except (OSError, ValueError) as error:
        return one_line(failure_words(error), max_chars=_FAILURE_CHARS)
    return ""


def failure_words(error: Exception) -> str:
    """Why a receiver of mail or of HTTP could not be told, for people."""
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=refused) if refused:
            code, text = next(iter(refused.values()))
            return f"The mail server refused the recipient: {code} {_said(text)}"
        case smtplib.SMTPResponseException():
            return f"The mail server refused the mail: {error.smtp_code} {_said(error.smtp_error)}"
        case smtplib.SMTPServerDisconnected():
            return "The mail server ended the connection."
        case _:
            return reaching.failure_words(error)


def _said(text: bytes | str) -> str:
    """The words of a mail server, which Python hands on as bytes or as text."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _reached(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address of the mail server that accepts a connection. Raises OSError where none does before
    the deadline.
    """
    refused: OSError = OSError(f"'{host}' has no address")
    for address in addresses_of(host, port, deadline):
        try:
            return connected(address, port, deadline)
        except OSError as error:
            refused = error
    raise refused


class _Smtp(smtplib.SMTP):
    def __init__(self, *args: Any, deadline: Deadline, **options: Any) -> None:
        self._deadline = deadline
        super().__init__(*args, **options)

    def _get_socket(self, host: str, port: int, _timeout: float) -> socket.socket:
        return _reached(host, port, self._deadline)


class _SmtpTls(smtplib.SMTP_SSL):
    def __init__(self, *args: Any, deadline: Deadline, **options: Any) -> None:
        self._deadline = deadline
        super().__init__(*args, **options)

    def _get_socket(self, host: str, port: int, _timeout: float) -> socket.socket:
        return self.context.wrap_socket(_reached(host, port, self._deadline), server_hostname=host)

"""The edge: one notification to one target, under one deadline. The only way of this room to anybody outside.

A webhook carries `Parley-Signature: v1=HMAC-SHA256(secret, timestamp "." body)`, so that its receiver can tell who sent
it and refuse what is old, and `Parley-Delivery`, which stays the same when a delivery is tried again.
"""

import hashlib
import hmac
import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from controlplane.clients.foreign_text import one_line
from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Delivery, Notification
from controlplane.notify.reaching import Deadline, addresses_of, connected, tls_context
from controlplane.notify.sealing import channel_secret
from controlplane.notify.targets import TargetRefusedError, allowed_address, target_of

_MAX_ANSWER_BYTES = 200
_SUBJECT_CHARS = 1_200
SIGNATURE = "Parley-Signature"
TIMESTAMP = "Parley-Timestamp"
DELIVERY = "Parley-Delivery"


@dataclass(frozen=True, slots=True)
class Sent:
    """Whether the other side took a notification, and what it answered."""

    ok: bool
    answer: str


def send(delivery: Delivery, *, timestamp: int) -> Sent:
    """Send a delivery once, within PARLEY_LIMIT_DELIVERY_TIMEOUT_MS in all; whether it was taken, and the answer. Never
    raises for what the other side does; never follows a redirect. Raises RuntimeError within a transaction.
    """
    before_waiting_outside()
    milliseconds = settings.PARLEY.limits.delivery_timeout_ms
    deadline = Deadline(milliseconds / 1_000)
    try:
        return SENDERS[ChannelKind(delivery.channel.kind)](delivery, timestamp, deadline)
    except TargetRefusedError as error:
        return Sent(False, str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        # Libraries have many words for a connection that is not waited for any longer.
        if deadline.passed:
            return Sent(False, f"It was not taken within {milliseconds:,} ms (PARLEY_LIMIT_DELIVERY_TIMEOUT_MS).")
        return Sent(False, f"{type(error).__name__}: {error}")


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """The signature of a webhook, which proves that this installation sent this body at this time."""
    mac = hmac.new(secret, f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={mac.hexdigest()}"


def webhook_body(notification: Notification, delivery: str) -> Mapping[str, object]:
    """The JSON object that a webhook sends."""
    return {
        "id": str(notification.public_id),
        "delivery": delivery,
        "kind": notification.kind,
        "environment": notification.environment,
        "subject": one_line(notification.subject, max_chars=_SUBJECT_CHARS),
        "severity": notification.severity,
        "at": notification.at.isoformat(),
        "title": notification.title,
        "text": notification.text,
        "link": notification.link,
    }


def slack_body(notification: Notification) -> Mapping[str, object]:
    """The JSON object that Slack takes, and others read too. Its three control characters are escaped, so that no
    client's text makes a link or calls a channel.
    """
    said = f"*{_escaped(notification.title)}*\n{_escaped(notification.text)}\n{_escaped(notification.link)}"
    return {"text": said, "unfurl_links": False}


def _escaped(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("*", "\u2217").replace("`", "'")


def _webhook(delivery: Delivery, timestamp: int, deadline: Deadline) -> Sent:
    number = str(delivery.public_id)
    body = json.dumps(webhook_body(delivery.notification, number)).encode()
    headers = {
        TIMESTAMP: str(timestamp),
        SIGNATURE: signature(channel_secret(delivery.channel), timestamp, body),
        DELIVERY: number,
    }
    return _post(delivery.channel.target, body, headers, deadline)


def _slack(delivery: Delivery, _: int, deadline: Deadline) -> Sent:
    return _post(delivery.channel.target, json.dumps(slack_body(delivery.notification)).encode(), {}, deadline)


def _mail(delivery: Delivery, _: int, deadline: Deadline) -> Sent:
    if settings.PARLEY.mail is None:
        return Sent(False, "There is no mail server: set PARLEY_MAIL_URL.")
    notification = delivery.notification
    body = f"{notification.text}\n\n{notification.link}\n"
    subject = " ".join(f"[{notification.environment or 'parley'}] {notification.title}".split())
    with get_connection(deadline=deadline) as connection:
        message = EmailMessage(
            subject,
            body,
            to=[delivery.channel.target],
            connection=connection,
            headers={"Message-ID": f"<{delivery.public_id}@parley>"},
        )
        message.send()
    return Sent(True, "accepted by the mail server")


SENDERS: Mapping[ChannelKind, Callable[[Delivery, int, Deadline], Sent]] = {
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.MAIL: _mail,
}
"""How each kind of channel is spoken to: a delivery, the Unix time and a deadline in, what its receiver said out. What
each raises is what `send` takes for a try that failed.
"""


def _post(url: str, body: bytes, headers: Mapping[str, str], deadline: Deadline) -> Sent:
    target = target_of(url)
    found = addresses_of(target.host, target.port, deadline)
    address = allowed_address(target, found, settings.PARLEY.webhook_allow)
    connection = _Pinned(target.host, target.port, address, deadline, tls=target.scheme == "https")
    try:
        connection.request(
            "POST",
            target.path,
            body,
            {"Content-Type": "application/json", "User-Agent": "parley", "Connection": "close", **headers},
        )
        answer = connection.getresponse()
        text = _said(answer).decode(errors="replace")
        said = "".join(character if character.isprintable() else " " for character in text)
        return Sent(200 <= answer.status < 300, f"{answer.status} {said}".strip())
    finally:
        connection.close()


def _said(answer: http.client.HTTPResponse) -> bytes:
    """The beginning of the answer's body. The status says whether it was taken; a rest that does not come changes
    nothing.
    """
    said = b""
    try:
        while len(said) < _MAX_ANSWER_BYTES and (part := answer.read1(_MAX_ANSWER_BYTES - len(said))):
            said += part
    except (OSError, http.client.HTTPException):
        pass
    return said


class _Pinned(http.client.HTTPConnection):
    """An HTTP connection to the address that was judged, under the name of the host."""

    def __init__(self, host: str, port: int, address: str, deadline: Deadline, *, tls: bool) -> None:
        super().__init__(host, port)
        self._address = address
        self._deadline = deadline
        self._tls = tls

    def connect(self) -> None:
        plain = connected(self._address, self.port, self._deadline)
        self.sock = tls_context().wrap_socket(plain, server_hostname=self.host) if self._tls else plain

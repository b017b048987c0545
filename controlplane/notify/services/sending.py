"""The edge: one notification to one target. The only module of this room that opens a connection.

A webhook carries `Parley-Signature: v1=HMAC-SHA256(secret, timestamp "." body)`, so that its receiver can tell who sent
it and refuse what is old, and `Parley-Delivery`, which stays the same when a delivery is tried again.
"""

import hashlib
import hmac
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.mail import EmailMessage

from controlplane.clients.foreign_text import one_line
from controlplane.notify.models import Channel, ChannelKind, Delivery, Notification
from controlplane.notify.sealing import channel_secret
from controlplane.notify.targets import TargetRefusedError, allowed_address, target_of

TIMEOUT_S = 5.0
_MAX_ANSWER_BYTES = 200
_SUBJECT_CHARS = 1_200
SIGNATURE = "Parley-Signature"
TIMESTAMP = "Parley-Timestamp"
DELIVERY = "Parley-Delivery"


@dataclass(frozen=True, slots=True)
class Sent:
    """Whether the other side took it, and what it said."""

    ok: bool
    answer: str


def send(delivery: Delivery, *, timestamp: int) -> Sent:
    """Try once. Never raises for what the other side does; never follows a redirect."""
    channel, notification = delivery.channel, delivery.notification
    try:
        if channel.kind == ChannelKind.MAIL:
            return _mail(channel, notification, str(delivery.public_id))
        if channel.kind == ChannelKind.SLACK:
            return _post(channel.target, json.dumps(slack_body(notification)).encode(), {})
        body = json.dumps(webhook_body(notification, str(delivery.public_id))).encode()
        headers = {
            TIMESTAMP: str(timestamp),
            SIGNATURE: signature(channel_secret(channel), timestamp, body),
            DELIVERY: str(delivery.public_id),
        }
        return _post(channel.target, body, headers)
    except TargetRefusedError as error:
        return Sent(False, str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Sent(False, f"{type(error).__name__}: {error}")


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """What proves that this installation sent this body at this time."""
    mac = hmac.new(secret, f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={mac.hexdigest()}"


def webhook_body(notification: Notification, delivery: str) -> Mapping[str, object]:
    """The JSON of a webhook."""
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
    """Slack's own form, which others read too. Its three control characters are escaped, so that no client's text makes
    a link or calls a channel.
    """
    said = f"*{_slack(notification.title)}*\n{_slack(notification.text)}\n{_slack(notification.link)}"
    return {"text": said, "unfurl_links": False}


def _slack(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("*", "\u2217").replace("`", "'")


def _mail(channel: Channel, notification: Notification, delivery: str) -> Sent:
    if settings.PARLEY.mail is None:
        return Sent(False, "There is no mail server: set PARLEY_MAIL_URL.")
    body = f"{notification.text}\n\n{notification.link}\n"
    subject = " ".join(f"[{notification.environment or 'parley'}] {notification.title}".split())
    message = EmailMessage(subject, body, to=[channel.target], headers={"Message-ID": f"<{delivery}@parley>"})
    message.send()
    return Sent(True, "accepted by the mail server")


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> Sent:
    target = target_of(url)
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    address = allowed_address(target, [str(entry[4][0]) for entry in found], settings.PARLEY.webhook_allow)
    connection = _Pinned(target.host, target.port, address, tls=target.scheme == "https")
    try:
        connection.request(
            "POST",
            target.path,
            body,
            {"Content-Type": "application/json", "User-Agent": "parley", "Connection": "close", **headers},
        )
        answer = connection.getresponse()
        text = answer.read(_MAX_ANSWER_BYTES).decode(errors="replace")
        said = "".join(character if character.isprintable() else " " for character in text)
        return Sent(200 <= answer.status < 300, f"{answer.status} {said}".strip())
    finally:
        connection.close()


class _Pinned(http.client.HTTPConnection):
    """Speaks to the address that was judged, under the name of the host."""

    def __init__(self, host: str, port: int, address: str, *, tls: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S)
        self._address = address
        self._tls = tls

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), TIMEOUT_S)
        self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host) if self._tls else plain

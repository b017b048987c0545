"""The edge: one notification to one target, under one deadline. The only way of this room to anybody outside; a webhook
is signed as `outside.posting` says.
"""

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
from controlplane.notify.sealing import channel_secret
from controlplane.outside.posting import post, signed
from controlplane.outside.reaching import Deadline
from controlplane.outside.targets import TargetRefusedError

_MAX_ANSWER_BYTES = 200
_SUBJECT_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Sent:
    """Whether the other side took a notification, and what it answered."""

    ok: bool
    answer: str


def send(delivery: Delivery, *, timestamp: int) -> Sent:
    """Send a delivery once, within PARLEY_LIMIT_DELIVERY_TIMEOUT_MS for everything. Returns whether the other side took
    it, and its answer. A failure of the other side is such an answer, not an exception; redirects are not followed.

    Raises RuntimeError within a transaction.
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


def webhook_body(notification: Notification, delivery: str) -> Mapping[str, object]:
    """The JSON object that is sent to a webhook for this notification. `delivery`: the id of the delivery."""
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
    """The JSON object in the form of Slack, which other services read, too. The three characters that Slack interprets
    are escaped, so that no text of a client makes a link or mentions a channel.
    """
    said = f"*{_escaped(notification.title)}*\n{_escaped(notification.text)}\n{_escaped(notification.link)}"
    return {"text": said, "unfurl_links": False}


def _escaped(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("*", "\u2217").replace("`", "'")


def _webhook(delivery: Delivery, timestamp: int, deadline: Deadline) -> Sent:
    number = str(delivery.public_id)
    body = json.dumps(webhook_body(delivery.notification, number)).encode()
    headers = signed(channel_secret(delivery.channel), timestamp, body, delivery=number)
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
    answered = post(url, body, headers, deadline, at_most_bytes=_MAX_ANSWER_BYTES)
    text = answered.body.decode(errors="replace")
    said = "".join(character if character.isprintable() else " " for character in text)
    return Sent(answered.ok, f"{answered.status} {said}".strip())

"""The edge: one try of one delivery, under one deadline. The only way of this room to anybody outside; a webhook is
signed as `outside.posting` says.
"""

import http.client
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from controlplane.clients.foreign_text import one_line
from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.notify.bodies import (
    Digest,
    alert_key,
    digest_words,
    mail_words,
    opsgenie_alert,
    opsgenie_close,
    pagerduty_resolve,
    pagerduty_trigger,
    slack_body,
    webhook_body,
)
from controlplane.notify.catalogue import Stage
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.mailing import failure_words
from controlplane.notify.models import Channel, Notification
from controlplane.notify.sealing import channel_secret
from controlplane.outside.posting import post, signed
from controlplane.outside.reaching import Deadline
from controlplane.outside.targets import TargetRefusedError, target_of

_ANSWER_CHARS = 200
# So much more is read, so that a secret at the end is read whole, and hidden.
_LONGEST_SECRET_BYTES = 2_000
_FAILURE_CHARS = 300
_HIDDEN = "…"
# Shorter parts of a path are words, which hide nothing and stand in other words.
_SECRET_CHARS = 8
_BETWEEN_PARTS = re.compile(r"[/?&=]")


@dataclass(frozen=True, slots=True)
class Parcel:
    """Everything that one try of a delivery needs, read before. `number`: the same for every try of a delivery;
    `timestamp`: when it is tried, in seconds since 1970; `stage`: what it says of the thing that it is about; `digest`:
    None for a single notification.
    """

    number: str
    channel: Channel
    told: tuple[Notification, ...]
    timestamp: int
    stage: Stage = Stage.MOMENT
    digest: Digest | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """Whether the other side took a notification, and what it answered."""

    ok: bool
    answer: str


def send(parcel: Parcel) -> Sent:
    """Send a delivery once, within PARLEY_LIMIT_DELIVERY_TIMEOUT_MS for everything. Returns whether the other side took
    it, and its answer, in which no secret of the channel is. A failure of the other side is such an answer, not an
    exception; redirects are not followed.

    Raises RuntimeError within a transaction.
    """
    before_waiting_outside()
    milliseconds = settings.PARLEY.limits.delivery_timeout_ms
    deadline = Deadline(milliseconds / 1_000)
    try:
        return SENDERS[ChannelKind(parcel.channel.kind)](parcel, deadline)
    except TargetRefusedError as error:
        return Sent(False, str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        # Libraries have many words for a connection that is not waited for any longer.
        if deadline.passed:
            return Sent(False, f"It was not taken within {milliseconds:,} ms (PARLEY_LIMIT_DELIVERY_TIMEOUT_MS).")
        return Sent(False, one_line(failure_words(error), max_chars=_FAILURE_CHARS))


def _webhook(parcel: Parcel, deadline: Deadline) -> Sent:
    [notification] = parcel.told
    body = json.dumps(webhook_body(notification, parcel.number)).encode()
    secret = channel_secret(parcel.channel)
    headers = signed(secret, parcel.timestamp, body, delivery=parcel.number)
    hidden = (secret.decode(), *_secret_parts(parcel.channel.target))
    return _post(parcel.channel.target, body, headers, deadline, hidden=hidden)


def _slack(parcel: Parcel, deadline: Deadline) -> Sent:
    [notification] = parcel.told
    target, body = parcel.channel.target, json.dumps(slack_body(notification)).encode()
    return _post(target, body, {}, deadline, hidden=_secret_parts(target))


def _pagerduty(parcel: Parcel, deadline: Deadline) -> Sent:
    [notification] = parcel.told
    routing_key = channel_secret(parcel.channel).decode()
    dedup_key = alert_key(notification, public_url=settings.PARLEY.public_url)
    if parcel.stage is Stage.ENDS:
        event = pagerduty_resolve(routing_key=routing_key, dedup_key=dedup_key)
    else:
        event = pagerduty_trigger(notification, routing_key=routing_key, dedup_key=dedup_key)
    url = f"{parcel.channel.target}/v2/enqueue"
    return _post(url, json.dumps(event).encode(), {}, deadline, hidden=(routing_key,))


def _opsgenie(parcel: Parcel, deadline: Deadline) -> Sent:
    [notification] = parcel.told
    key = channel_secret(parcel.channel).decode()
    alias = alert_key(notification, public_url=settings.PARLEY.public_url)
    if parcel.stage is Stage.ENDS:
        url = f"{parcel.channel.target}/v2/alerts/{alias}/close?identifierType=alias"
        body = opsgenie_close(notification)
    else:
        url = f"{parcel.channel.target}/v2/alerts"
        body = opsgenie_alert(notification, alias=alias)
    headers = {"Authorization": f"GenieKey {key}"}
    return _post(url, json.dumps(body).encode(), headers, deadline, hidden=(key,))


def _mail(parcel: Parcel, deadline: Deadline) -> Sent:
    if settings.PARLEY.mail is None:
        return Sent(False, "There is no mail server: set PARLEY_MAIL_URL.")
    subject, text = digest_words(parcel.told, parcel.digest) if parcel.digest else mail_words(parcel.told[0])
    with get_connection(deadline=deadline) as connection:
        message = EmailMessage(
            subject,
            text,
            to=[parcel.channel.target],
            connection=connection,
            headers={"Message-ID": f"<{parcel.number}@parley>"},
        )
        message.send()
    return Sent(True, "accepted by the mail server")


SENDERS: Mapping[ChannelKind, Callable[[Parcel, Deadline], Sent]] = {
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.PAGERDUTY: _pagerduty,
    ChannelKind.OPSGENIE: _opsgenie,
    ChannelKind.MAIL: _mail,
    ChannelKind.DIGEST: _mail,
}
"""How each kind of channel is spoken to: what is sent and a deadline in, what its receiver said out. What each raises
is what `send` takes for a try that failed.
"""


def _post(url: str, body: bytes, headers: Mapping[str, str], deadline: Deadline, *, hidden: Iterable[str]) -> Sent:
    """Send JSON and return what was answered to it. `hidden`: what no answer may hold when it is kept."""
    answered = post(url, body, headers, deadline, at_most_bytes=_ANSWER_CHARS + _LONGEST_SECRET_BYTES)
    text = answered.body.decode(errors="replace")
    said = "".join(character if character.isprintable() else " " for character in text)
    for secret in hidden:
        said = said.replace(secret, _HIDDEN)
    return Sent(answered.ok, f"{answered.status} {said[:_ANSWER_CHARS] or _phrase(answered.status)}".strip())


def _secret_parts(url: str) -> Iterator[str]:
    """What of a URL may be all that keeps others from using it: its path and query, and every longer part of them."""
    path = target_of(url).path
    if path != "/":
        yield path
    yield from (part for part in _BETWEEN_PARTS.split(path) if len(part) >= _SECRET_CHARS)


def _phrase(status: int) -> str:
    """The standard words of an HTTP status; empty for one that has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""

"""What receivers are sent, in the form that each kind of channel has. Pure.

Words of clients come in already cut and harmless. Here they are escaped for whoever interprets more than plain text,
and cut to what a service takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from controlplane.clients.foreign_text import one_line
from controlplane.notify.catalogue import Severity
from controlplane.notify.models import Notification
from controlplane.notify.schedules import Every

_SUBJECT_CHARS: Final = 1_200
_WORDS: Final[Mapping[Severity, str]] = {
    Severity.PAGE: "urgent",
    Severity.NORMAL: "normal",
    Severity.QUIET: "quiet",
}
# Slack, "Block Kit, section": its text has at most 3,000 characters.
_SLACK_SECTION_CHARS: Final = 3_000
# PagerDuty, "PD-CEF": `summary` has at most 1,024 characters.
_PAGERDUTY_SUMMARY_CHARS: Final = 1_024
_PAGERDUTY_SEVERITY: Final[Mapping[Severity, str]] = {
    Severity.PAGE: "critical",
    Severity.NORMAL: "warning",
    Severity.QUIET: "info",
}
# Opsgenie, "Create Alert": `message` has at most 130 characters, `entity` 512, a tag 50.
_OPSGENIE_MESSAGE_CHARS: Final = 130
_OPSGENIE_ENTITY_CHARS: Final = 512
_OPSGENIE_TAG_CHARS: Final = 50
_OPSGENIE_PRIORITY: Final[Mapping[Severity, str]] = {Severity.PAGE: "P1", Severity.NORMAL: "P3", Severity.QUIET: "P5"}
_SOURCE: Final = "Parley"


@dataclass(frozen=True, slots=True)
class Digest:
    """What a digest says beside its messages. `until`: when its hour or day ended, in words; `count`: how many messages
    it has in all, of which those that are listed are the first; `inbox`: the URL of the page that has them all.
    """

    every: Every
    until: str
    count: int
    inbox: str


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
    """The JSON object in the form of Slack: blocks, with a button that leads to the page; and the same as one text,
    which Slack shows in its notices, and which other services that take Slack's form read.

    What Slack interprets is escaped, so that no text of a client makes a link or mentions a channel.
    """
    said = f"*{_escaped(notification.title)}*\n{_escaped(notification.text)}"
    facts = (_WORDS[Severity(notification.severity)], notification.environment, notification.kind)
    blocks: list[Mapping[str, object]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": _whole_entities(said, _SLACK_SECTION_CHARS)}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _escaped(" · ".join(filter(None, facts)))}]},
    ]
    if notification.link:
        label = {"type": "plain_text", "text": "Open in Parley"}
        button = {"type": "button", "action_id": "open", "text": label, "url": notification.link}
        blocks.append({"type": "actions", "elements": [button]})
    return {"text": f"{said}\n{_escaped(notification.link)}", "unfurl_links": False, "blocks": blocks}


def alert_key(notification: Notification, *, public_url: str) -> str:
    """The key by which a service knows that two notifications are about the same thing, so that one alert is made of
    both and closed by the last. `public_url`: this installation's, so that two of them have different keys.
    """
    noun = notification.kind.partition(".")[0]
    about = f"{public_url}\n{notification.environment}\n{noun}\n{notification.subject}"
    # Subjects may be longer than any service takes, and hold what its URLs could not.
    return f"parley-{sha256(about.encode()).hexdigest()}"


def pagerduty_trigger(notification: Notification, *, routing_key: str, dedup_key: str) -> Mapping[str, object]:
    """The event by which PagerDuty opens an alert, or adds to the open one with the same key (Events API v2)."""
    return {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": dedup_key,
        "client": _SOURCE,
        "client_url": notification.link,
        "links": [{"href": notification.link, "text": "Open in Parley"}] if notification.link else [],
        "payload": {
            "summary": notification.title[:_PAGERDUTY_SUMMARY_CHARS],
            "source": notification.environment or _SOURCE,
            "severity": _PAGERDUTY_SEVERITY[Severity(notification.severity)],
            "timestamp": notification.at.isoformat(),
            "component": one_line(notification.subject, max_chars=_SUBJECT_CHARS),
            "group": notification.environment,
            "class": notification.kind,
            "custom_details": {"text": notification.text},
        },
    }


def pagerduty_resolve(*, routing_key: str, dedup_key: str) -> Mapping[str, object]:
    """The event by which PagerDuty resolves the alert with this key; it takes no notice of one that is not open."""
    return {"routing_key": routing_key, "event_action": "resolve", "dedup_key": dedup_key}


def opsgenie_alert(notification: Notification, *, alias: str) -> Mapping[str, object]:
    """The body by which Opsgenie creates an alert, or counts it to the open one with the same alias."""
    return {
        "message": notification.title[:_OPSGENIE_MESSAGE_CHARS],
        "alias": alias,
        "description": "\n".join(filter(None, (notification.title, notification.text, notification.link))),
        "entity": one_line(notification.subject, max_chars=_OPSGENIE_ENTITY_CHARS),
        "source": _SOURCE,
        "priority": _OPSGENIE_PRIORITY[Severity(notification.severity)],
        "tags": [tag[:_OPSGENIE_TAG_CHARS] for tag in (notification.kind, notification.environment) if tag],
        "details": {
            "kind": notification.kind,
            "environment": notification.environment,
            "link": notification.link,
            "at": notification.at.isoformat(),
        },
    }


def opsgenie_close(notification: Notification) -> Mapping[str, object]:
    """The body by which Opsgenie closes an alert."""
    return {"source": _SOURCE, "note": f"{notification.title}. {notification.text}"}


def mail_words(notification: Notification) -> tuple[str, str]:
    """The subject and the text of a mail with one notification."""
    return _subject(notification.environment, notification.title), f"{notification.text}\n\n{notification.link}\n"


def digest_words(told: Sequence[Notification], digest: Digest) -> tuple[str, str]:
    """The subject and the text of a mail with the notifications of an hour or a day, in the given order."""
    messages = f"{digest.count:,} message{'' if digest.count == 1 else 's'}"
    subject = _subject("", f"{messages} of the {digest.every.value} until {digest.until}")
    parts = [f"What Parley told in the {digest.every.value} until {digest.until}: {messages}, the most urgent first."]
    parts += [_entry(each) for each in told]
    if digest.count > len(told):
        parts.append(f"And {digest.count - len(told):,} more, which are in the inbox.")
    parts.append(f"The inbox: {digest.inbox}")
    return subject, "\n\n".join(parts) + "\n"


def _entry(notification: Notification) -> str:
    facts = (_WORDS[Severity(notification.severity)], notification.environment, f"{notification.at:%Y-%m-%d %H:%M} UTC")
    return "\n".join((f"* {notification.title}", f"  {', '.join(filter(None, facts))}", *_indented(notification)))


def _indented(notification: Notification) -> list[str]:
    return [f"  {line}" for line in (*notification.text.splitlines(), notification.link) if line]


def _subject(environment: str, title: str) -> str:
    return " ".join(f"[{environment or 'parley'}] {title}".split())


def _escaped(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("*", "\u2217").replace("`", "'")


def _whole_entities(escaped: str, most: int) -> str:
    """The first `most` characters of an escaped text, without a last one whose escape would be cut."""
    cut = escaped[:most]
    begun = cut.rfind("&")
    return cut[:begun] if len(escaped) > most and begun > cut.rfind(";") else cut

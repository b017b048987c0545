"""Makes notifications of domain events: each event once, repeats about one subject not at all (texts.md section 6).

The inbox has all of them, also of an incident that is muted, of which no channel is told. Of an environment, channels
are sent so many in an hour of what data planes cause, of these so many of what one of them causes, and as many of all
the rest: a flood of refusals hides neither a failed build nor what others refuse. What is left out is summed up
(`summing`).

Which channel is sent what is decided by `addressing`.

An event is handled in the transaction that writes what people are told of it, so that a crash loses neither and doubles
neither.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from controlplane.clients.clock import database_now
from controlplane.clients.foreign_text import one_line
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.journal.services import Event, events_prune, events_take, events_waiting
from controlplane.notify.catalogue import KINDS, LINK_CHARS, Kind, Severity, wording_of
from controlplane.notify.models import Delivery, Notification, Sending, ToldCount
from controlplane.notify.rollout_words import is_news
from controlplane.notify.services.addressing import notifications_address
from controlplane.notify.services.summing import SUMMARY
from xdscore.shares import ACCOUNTABLE_CHARS, SEVERAL

log = structlog.get_logger(__name__)

_AT_ONCE = 200
# What says that an incident is there, or is there again.
_NEWS = ("incident.opened", "incident.regressed", "incident.escalating", "incident.unmuted")
_SAID_CHARS = 500
WINDOW = timedelta(hours=1)
_KEEP_EVENTS = timedelta(days=1)
_KEEP_NOTIFICATIONS = timedelta(days=30)


def notifications_expand() -> int:
    """Make notifications of the events that wait; returns how many were made."""
    # Looking first keeps a worker with nothing to do from taking SQLite's writer lock each second.
    if not events_waiting():
        return 0
    with transaction.atomic(durable=True):
        told = [(row, event) for event in events_take(limit=_AT_ONCE) if (row := _tell(event)) is not None]
        notifications_address(told)
        _count([event.kind for _, event in told])
        events_prune(older_than=_KEEP_EVENTS)
        before = database_now() - _KEEP_NOTIFICATIONS
        Notification.objects.filter(at__lt=before).delete()
        # A digest goes with the first of its notifications, which is no older than a day.
        Delivery.objects.filter(until__lt=before + timedelta(days=1)).delete()
    return len(told)


def _count(kinds: Sequence[str]) -> None:
    """Add one for each of `kinds` to the count of notifications of its kind. The rows are written in one order, so that
    two processes cannot block each other.
    """
    for kind, times in sorted(Counter(kinds).items()):
        ToldCount.objects.get_or_create(kind=kind)
        ToldCount.objects.filter(kind=kind).update(count=F("count") + times)


def _tell(event: Event) -> Notification | None:
    """Make the notification of an event; None where people are not told of it."""
    kind = KINDS.get(event.kind)
    if kind is None:
        return None
    # Whoever wrote it: a reason, a name or a text of a client must drive no terminal and turn no line of any channel.
    said = {name: one_line(str(value), max_chars=_SAID_CHARS) for name, value in event.payload.items()}
    if not is_news(event.kind, said):
        return None
    words = wording_of(kind, environment=event.environment, payload=said, public_url=settings.PARLEY.public_url)
    caused_by, beyond = _share(event)
    quiet = kind.personal or event.payload.get("muted")
    sending = Sending.INBOX if quiet else Sending.HELD if beyond else Sending.SENT
    if _told_lately(event, kind, words.severity, sent=sending is Sending.SENT):
        return None
    notification = Notification.objects.create(
        event=event.id,
        at=event.at,
        kind=event.kind,
        environment=event.environment,
        subject=event.subject,
        severity=words.severity.value,
        title=words.title[:500],
        text=words.text[:2_000],
        link=words.link[:LINK_CHARS],
        caused_by=caused_by,
        recipient=str(event.payload.get("recipient", ""))[:MAX_PRINCIPAL_CHARS],
        sending=sending.value,
    )
    if sending is Sending.HELD:
        log.warning("notification.held_back", environment=event.environment, kind=event.kind)
    else:
        log.info("notification.made", kind=event.kind, environment=event.environment, subject=event.subject)
    return notification


def _told_lately(event: Event, kind: Kind, severity: Severity, *, sent: bool) -> bool:
    """Whether people were told about the event's subject within the cooldown, so that this event is not told. `sent`:
    channels are to be told of it; then notifications that they were not sent do not count as told.
    """
    about = Notification.objects.filter(environment=event.environment, subject=event.subject)
    if event.payload.get("again"):
        told = about.filter(kind__in=_NEWS).order_by("pk").last()
        if told is None or told.sending == Sending.SENT.value:
            return True
    if not kind.cooldown:
        return False
    if sent:
        about = about.filter(sending=Sending.SENT.value)
    as_loud = [each.value for each in Severity if each.loudness >= severity.loudness]
    lately = Q(kind=event.kind) | Q(kind__in=kind.after, severity__in=as_loud)
    return about.filter(lately, at__gt=event.at - kind.cooldown).exists()


def _share(event: Event) -> tuple[str, bool]:
    """Who the event's message is counted for, of those who caused it the one with the fewest messages so far; and
    whether channels have had as many messages within an hour as that party may cause.
    """
    said = event.payload.get("caused_by") or ()
    # One key alone is what a version before wrote.
    causes = [str(each)[:ACCOUNTABLE_CHARS] for each in (said if isinstance(said, list) else [said] if said else ())]
    if event.kind == SUMMARY:
        return "", False
    limits = settings.PARLEY.limits
    sent = Notification.objects.filter(
        environment=event.environment, at__gt=event.at - WINDOW, sending=Sending.SENT.value
    ).exclude(kind=SUMMARY)
    if not causes:
        return "", sent.filter(caused_by="").count() >= limits.messages_per_h
    counted = Counter(sent.exclude(caused_by="").values_list("caused_by", flat=True))
    caused_by = min(causes, key=lambda each: counted[each])
    of_one = 0 if caused_by == SEVERAL else counted[caused_by]
    beyond = counted.total() >= limits.messages_per_h or of_one >= limits.messages_per_identity_h
    # Of what is held nobody is named in the summary who is not alone in saying it.
    return SEVERAL if beyond and len(causes) > 1 else caused_by, beyond

"""Sums up the messages that channels were not sent because there were more than anybody reads: the inbox has them."""

from collections import Counter
from datetime import timedelta

from django.db import transaction

from controlplane.clients.clock import database_now
from controlplane.clients.foreign_text import one_line
from controlplane.journal.services import event_append
from controlplane.notify.models import Notification, Sending
from xdscore.shares import SEVERAL

SUMMARY = "messages.held"
# More may come: the first summary waits for so long, and the next for an hour, in which there is room again.
_COLLECTED_FOR = timedelta(minutes=10)
_AGAIN_AFTER = timedelta(hours=1)
_WHO_CHARS = 200


def held_notice() -> None:
    """Append an event for each environment of which notifications were not sent to channels; each is in one summary."""
    now = database_now()
    held = Notification.objects.filter(sending=Sending.HELD.value)
    for environment in held.filter(at__lt=now - _COLLECTED_FOR).values_list("environment", flat=True).distinct():
        lately = Notification.objects.filter(environment=environment, kind=SUMMARY, at__gt=now - _AGAIN_AFTER)
        if not lately.exists():
            _sum_up(environment)


def _sum_up(environment: str) -> None:
    with transaction.atomic(durable=True):
        held = Notification.objects.select_for_update().filter(environment=environment, sending=Sending.HELD.value)
        rows = list(held.values_list("pk", "kind", "caused_by"))
        if not rows:
            return
        kinds = Counter(kind for _, kind, _ in rows)
        causes = Counter(who for _, _, who in rows if who not in ("", SEVERAL))
        (who, of_one) = causes.most_common(1)[0] if causes else ("", 0)
        Notification.objects.filter(pk__in=[pk for pk, _, _ in rows]).update(sending=Sending.SUMMED.value)
        event_append(
            kind=SUMMARY,
            environment=environment,
            subject=f"messages/{environment}",
            payload={
                "messages": len(rows),
                "counts": ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
                "kinds": sorted(kinds),
                # Without the word that says which kind of key it is.
                "who": one_line(who[3:], max_chars=_WHO_CHARS),
                "of_one": of_one,
            },
        )

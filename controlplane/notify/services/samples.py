"""Sends a sample to a channel, so that somebody sees whether its receiver takes what it is told."""

import math
import threading
import time
from collections import deque
from uuid import UUID, uuid4

from django.conf import settings

from controlplane.clients.clock import database_now
from controlplane.common.errors import Busy
from controlplane.notify.bodies import Digest
from controlplane.notify.catalogue import Severity, Stage
from controlplane.notify.channel_kinds import ChannelKind, Manner
from controlplane.notify.models import Channel, Notification
from controlplane.notify.schedules import schedule_stored
from controlplane.notify.services.channels import channel_find
from controlplane.notify.services.sending import Parcel, Sent, send

# Stands in for an event where there is none; real ones count up from 1.
_SAMPLE_EVENT = 0
_MINUTE_S = 60.0


class _Samples:
    """Limits how many sample notifications this process sends in a minute, and so how many it sends at once. Threads
    may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: deque[float] = deque()

    def take(self, most: int) -> None:
        """Count a sample notification that is about to be sent. Raises Busy when `most` were sent in the last
        minute.
        """
        now = time.monotonic()
        with self._lock:
            while self._sent and self._sent[0] <= now - _MINUTE_S:
                self._sent.popleft()
            if len(self._sent) >= most:
                raise Busy(
                    "More samples are asked for than may be sent in a minute "
                    f"(PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN is {most:,}). Nothing was sent.",
                    retry_after_s=math.ceil(self._sent[-most] + _MINUTE_S - now),
                )
            self._sent.append(now)


_samples = _Samples()


def channel_test(*, public_id: UUID) -> Sent:
    """Send a sample notification to a channel now. Returns whether the other side took it, and its answer; nothing is
    stored. Where the channel makes alerts, one is opened with the lowest urgency and closed at once.

    Raises NotFound, and Busy when more samples than PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN were sent within a minute, by
    anybody to any channel, so that nobody can use this to look for open ports.
    """
    channel = channel_find(public_id=public_id)
    _samples.take(settings.PARLEY.limits.channel_tests_per_min)
    if ChannelKind(channel.kind).facts.manner is not Manner.ALERTS:
        return send(_sample(channel))
    opened = send(_sample(channel, Stage.BEGINS))
    if not opened.ok:
        return opened
    closed = send(_sample(channel, Stage.ENDS))
    return Sent(closed.ok, f"opened: {opened.answer}; closed: {closed.answer}")


def _sample(channel: Channel, stage: Stage = Stage.MOMENT) -> Parcel:
    now = database_now()
    notification = Notification(
        event=_SAMPLE_EVENT,
        at=now,
        kind="channel.test",
        subject=f"channel/{channel.public_id}",
        severity=Severity.QUIET.value,
        title=f"A sample for channel '{channel.name}'",
        text="Notifications of this installation arrive here.",
        link=settings.PARLEY.public_url,
    )
    digest = None
    if channel.schedule:
        schedule = schedule_stored(channel.schedule)
        digest = Digest(schedule.every, schedule.local_words(now), 1, f"{settings.PARLEY.public_url}/messages")
    return Parcel(str(uuid4()), channel, (notification,), int(now.timestamp()), stage, digest)

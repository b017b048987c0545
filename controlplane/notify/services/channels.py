"""Keeps channels: where notifications go."""

import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.clients.clock import database_now
from controlplane.common.errors import Busy, Conflict, InputInvalid, NotFound
from controlplane.journal.services import audit_record
from controlplane.notify.catalogue import KINDS, Severity
from controlplane.notify.channel_kinds import Addressed, ChannelKind
from controlplane.notify.models import Channel, Delivery, Notification
from controlplane.notify.sealing import secret_make, secret_seal
from controlplane.notify.services.sending import Sent, send
from controlplane.outside.targets import Target, TargetRefusedError, allowed_address, shown_target, target_of

MAX_CHANNELS = 100
# Stands in for an event where there is none; real ones count up from 1.
_SAMPLE_EVENT = 0
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A channel to create. `environments` and `kinds`: the only ones of which it is told; empty: all."""

    name: str
    kind: ChannelKind
    target: str
    environments: Sequence[str] = ()
    kinds: Sequence[str] = ()


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


@transaction.atomic(durable=True)
def channel_create(*, wanted: NewChannel, actor: Principal, request_id: str = "") -> tuple[Channel, str]:
    """Create a channel. Returns its row and, where its kind signs, the key with which it signs, which is shown only
    this once; for others an empty text.

    Raises InputInvalid for a target to which nothing may be sent, and Conflict for a name that another channel has or
    where there are too many channels.
    """
    _check(wanted)
    if Channel.objects.filter(name=wanted.name).exists():
        raise Conflict(f"There is a channel '{wanted.name}' already.")
    if Channel.objects.count() >= MAX_CHANNELS:
        raise Conflict(f"There are {MAX_CHANNELS} channels already, which is as many as there may be.")
    channel = Channel(
        name=wanted.name,
        kind=wanted.kind.value,
        target=wanted.target,
        environments=list(wanted.environments),
        kinds=list(wanted.kinds),
    )
    secret = secret_make() if wanted.kind.facts.signed else ""
    if secret:
        secret_seal(channel, secret)
    channel.save(force_insert=True)
    _audit("channel.created", channel, actor, request_id)
    return channel, secret


@transaction.atomic(durable=True)
def channel_delete(*, public_id: UUID, actor: Principal, request_id: str = "") -> None:
    """Delete a channel with its delivery log. Raises NotFound."""
    channel = _get(public_id)
    _audit("channel.deleted", channel, actor, request_id)
    channel.delete()


@transaction.atomic(durable=True)
def channel_resume(*, public_id: UUID, actor: Principal, request_id: str = "") -> None:
    """End a channel's pause; what waited for it is sent, too. Does nothing to a channel that is not paused. Raises
    NotFound.
    """
    channel = _get(public_id)
    if channel.paused_at is None:
        return
    channel.paused_at, channel.paused_reason, channel.failures = None, "", 0
    channel.save(update_fields=["paused_at", "paused_reason", "failures"])
    _audit("channel.resumed", channel, actor, request_id)


def channel_test(*, public_id: UUID) -> Sent:
    """Send a sample notification to a channel now. Returns whether the other side took it, and its answer; nothing is
    stored.

    Raises NotFound, and Busy when more samples than PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN were sent within a minute, by
    anybody to any channel, so that nobody can use this to look for open ports.
    """
    channel = _get(public_id)
    _samples.take(settings.PARLEY.limits.channel_tests_per_min)
    now = database_now()
    sample = Notification(
        event=_SAMPLE_EVENT,
        at=now,
        kind="channel.test",
        severity=Severity.QUIET.value,
        title=f"A sample for channel '{channel.name}'",
        text="Notifications of this installation arrive here.",
        link=settings.PARLEY.public_url,
    )
    return send(Delivery(notification=sample, channel=channel, next_at=now), timestamp=int(now.timestamp()))


def _check(wanted: NewChannel) -> None:
    unknown = sorted(set(wanted.kinds) - KINDS.keys())
    if unknown:
        raise InputInvalid(f"'{unknown[0]}' is no kind of notification. Kinds are: {', '.join(KINDS)}.")
    if wanted.kind.facts.addressed is Addressed.MAIL:
        try:
            validate_email(wanted.target)
        except ValidationError:
            raise InputInvalid(f"The target of a {wanted.kind} channel must be one mail address.") from None
        return
    try:
        _check_literal(target_of(wanted.target))
    except TargetRefusedError as error:
        raise InputInvalid(f"{error} Nothing was changed.") from None


def _check_literal(target: Target) -> None:
    """Raise InputInvalid where the target's host is an IP address to which nothing may be sent. A host name passes
    here; its addresses are judged each time something is sent.
    """
    try:
        ip_address(target.host)
    except ValueError:
        return
    allowed_address(target, [target.host], settings.PARLEY.webhook_allow)


def _get(public_id: UUID) -> Channel:
    channel = Channel.objects.filter(public_id=public_id).first()
    if channel is None:
        raise NotFound(f"There is no channel '{public_id}'.")
    return channel


def _audit(verb: str, channel: Channel, actor: Principal, request_id: str) -> None:
    detail = {"kind": channel.kind, "target": shown_target(channel.target)}
    audit_record(actor=actor, verb=verb, subject=channel.name, request_id=request_id, detail=detail)

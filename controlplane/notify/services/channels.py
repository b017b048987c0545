"""Keeps channels: where notifications go."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.journal.services import audit_record
from controlplane.notify.channel_kinds import Key
from controlplane.notify.channel_rules import Judged, NewChannel, channel_judge
from controlplane.notify.models import Channel
from controlplane.notify.sealing import secret_make, secret_seal
from controlplane.outside.targets import shown_target

MAX_CHANNELS = 100
_REASON_CHARS = 300


@transaction.atomic(durable=True)
def channel_create(*, wanted: NewChannel, actor: Principal, request_id: str = "") -> tuple[Channel, str]:
    """Create a channel. Returns its row and, where its kind signs, the key with which it signs, which is shown only
    this once; for others an empty text.

    Raises InputInvalid with everything that is wrong with it, such as a target to which nothing may be sent, and
    Conflict for a name that another channel has or where there are too many channels.
    """
    judged = _judged(wanted)
    _name_free(wanted.name)
    if Channel.objects.count() >= MAX_CHANNELS:
        raise Conflict(f"There are {MAX_CHANNELS} channels already, which is as many as there may be.")
    channel = Channel(kind=wanted.kind.value)
    _fill(channel, wanted, judged)
    made = secret_make() if wanted.kind.facts.key is Key.MADE else ""
    if made or wanted.secret:
        secret_seal(channel, made or wanted.secret)
    channel.save(force_insert=True)
    _audit("channel.created", channel, actor, request_id)
    return channel, made


@transaction.atomic(durable=True)
def channel_update(*, public_id: UUID, wanted: NewChannel, actor: Principal, request_id: str = "") -> Channel:
    """Change a channel to what is wanted; its kind stays. What waits for it is sent as the channel is then. Returns its
    row.

    Raises NotFound and what `channel_create` raises. A key that a service gave has to be given again where it would be
    sent elsewhere: whoever cannot read it must not be able to have it sent to themselves.
    """
    channel = _locked(public_id)
    if wanted.kind.value != channel.kind:
        raise InputInvalid("The kind of a channel cannot be changed. Nothing was changed.")
    stays = not wanted.target or wanted.target == channel.target
    judged = _judged(replace(wanted, target=wanted.target or channel.target), has_key=bool(channel.secret) and stays)
    if wanted.name != channel.name:
        _name_free(wanted.name)
    before = _facts(channel)
    _fill(channel, wanted, judged)
    if wanted.secret:
        secret_seal(channel, wanted.secret)
    channel.save()
    _audit("channel.updated", channel, actor, request_id, {"before": before, "new_secret": bool(wanted.secret)})
    return channel


@transaction.atomic(durable=True)
def channel_delete(*, public_id: UUID, actor: Principal, request_id: str = "") -> None:
    """Delete a channel with its delivery log. Raises NotFound."""
    channel = channel_find(public_id=public_id)
    _audit("channel.deleted", channel, actor, request_id)
    channel.delete()


@transaction.atomic(durable=True)
def channel_pause(*, public_id: UUID, reason: str, actor: Principal, request_id: str = "") -> None:
    """Send nothing to a channel until it is resumed; what happens meanwhile waits for it. Does nothing to a channel
    that is paused. Raises NotFound.
    """
    channel = _locked(public_id)
    if channel.paused_at is not None:
        return
    channel.paused_at, channel.paused_reason = database_now(), f"{actor.name}: {reason}"[:_REASON_CHARS]
    channel.save(update_fields=["paused_at", "paused_reason"])
    _audit("channel.paused", channel, actor, request_id, {"reason": reason})


@transaction.atomic(durable=True)
def channel_resume(*, public_id: UUID, actor: Principal, request_id: str = "") -> None:
    """End a channel's pause; what waited for it is sent, too. Does nothing to a channel that is not paused. Raises
    NotFound.
    """
    channel = _locked(public_id)
    if channel.paused_at is None:
        return
    channel.paused_at, channel.paused_reason, channel.failures, channel.failing_since = None, "", 0, None
    channel.save(update_fields=["paused_at", "paused_reason", "failures", "failing_since"])
    _audit("channel.resumed", channel, actor, request_id)


def channel_find(*, public_id: UUID) -> Channel:
    """The row of the channel with this public id. Raises NotFound."""
    channel = Channel.objects.filter(public_id=public_id).first()
    if channel is None:
        raise NotFound(f"There is no channel '{public_id}'.")
    return channel


def _locked(public_id: UUID) -> Channel:
    """The row of the channel, which nobody else writes until the transaction ends. Raises NotFound."""
    channel = Channel.objects.select_for_update().filter(public_id=public_id).first()
    return channel if channel is not None else channel_find(public_id=public_id)


def _judged(wanted: NewChannel, *, has_key: bool = False) -> Judged:
    """What is stored of a channel that somebody wants. Raises InputInvalid with everything that is wrong with it."""
    judged = channel_judge(wanted, allow=settings.PARLEY.webhook_allow, has_key=has_key)
    found = judged.findings
    if found:
        detail = found[0].detail if len(found) == 1 else f"The channel has {len(found)} problems."
        raise InputInvalid(f"{detail} Nothing was changed.", findings=found)
    return judged


def _name_free(name: str) -> None:
    """Raise Conflict where a channel has this name."""
    if Channel.objects.filter(name=name).exists():
        raise Conflict(f"There is a channel '{name}' already. Nothing was changed.")


def _fill(channel: Channel, wanted: NewChannel, judged: Judged) -> None:
    channel.name, channel.target = wanted.name, judged.target
    channel.environments, channel.kinds = list(wanted.environments), list(wanted.kinds)
    channel.schedule = judged.schedule.as_json() if judged.schedule is not None else None


def _facts(channel: Channel) -> dict[str, object]:
    """What the audit log has of a channel: everything but its secrets, and the path of its URL may be one."""
    return {
        "name": channel.name,
        "target": shown_target(channel.target),
        "environments": channel.environments,
        "kinds": channel.kinds,
        "digest": channel.schedule,
    }


def _audit(
    verb: str, channel: Channel, actor: Principal, request_id: str, more: Mapping[str, object] | None = None
) -> None:
    detail = {"kind": channel.kind, **_facts(channel), **(more or {})}
    audit_record(actor=actor, verb=verb, subject=channel.name, request_id=request_id, detail=detail)

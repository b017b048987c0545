"""The tables of what happened: the audit log, domain events that notifications are made of, and kept answers."""

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.database.append_only import AppendOnly


class AuditEvent(AppendOnly):
    """An audit entry: who did what to what, when, and by which request. Only ever added to.

    `actor` is what they were called then; `principal` their id (`principal_ids.PrincipalId`), empty where the event is
    older than ids or nobody is known to have acted.
    """

    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, default="", db_default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    environment = models.CharField(max_length=64, blank=True, default="")
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=1200, blank=True, default="")
    detail = models.JSONField(default=dict)

    class Meta:
        """Entries are looked up by environment, newest first."""

        indexes = (models.Index(fields=("environment", "id")),)

    def __str__(self) -> str:
        """The time, actor, verb and subject of the entry on one line."""
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.verb} {self.subject}"


class KeptAnswer(models.Model):
    """The answer that a request was given under its Idempotency-Key. `status` is null while it is being answered.

    `actor` is the id of the principal that took the key (`principal_ids.PrincipalId`), and no name. `body` is empty of
    an answer that told a secret: it is told once, and kept nowhere.
    """

    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        """A key stands for one request of one principal."""

        constraints = (models.UniqueConstraint(fields=("actor", "key"), name="answer_key_once"),)

    def __str__(self) -> str:
        """The principal's id, and the key."""
        return f"{self.actor} {self.key}"


class DomainEvent(models.Model):
    """An event that people may want to hear of. `handled_at` is null until notifications were made of it."""

    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=64)
    environment = models.CharField(max_length=64, blank=True, default="")
    subject = models.CharField(max_length=1200, blank=True, default="")
    payload = models.JSONField(default=dict)
    handled_at = models.DateTimeField(null=True)

    class Meta:
        """Events that are not handled are looked up by a small index of their own."""

        indexes = (models.Index(fields=("id",), condition=models.Q(handled_at=None), name="event_pending"),)

    def __str__(self) -> str:
        """The kind and subject of the event."""
        return f"{self.kind} {self.subject}"

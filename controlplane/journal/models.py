"""The tables of what happened: the audit log, domain events that notifications are made of, and kept answers."""

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.database.append_only import AppendOnly


class AuditEvent(AppendOnly):
    """An audit entry: who did what to what, when, and by which request. Entries are never changed or deleted.

    `actor`: the name of who acted, as it was then.
    `principal`: the id (`principal_ids.PrincipalId`); empty in entries older than ids, and where it is not known.
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
        """Entries are looked up by environment, newest first, and among them by who acted."""

        indexes = (
            models.Index(fields=("environment", "id")),
            models.Index(fields=("actor", "id"), name="audit_by_actor"),
        )

    def __str__(self) -> str:
        """The time, actor, verb and subject of the entry on one line."""
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.verb} {self.subject}"


class KeptAnswer(models.Model):
    """The answer that a request with an Idempotency-Key was given. `status`: null while the request is being answered.

    `actor`: the id (`principal_ids.PrincipalId`) of who sent it, not a name.
    `body`: empty where the answer contained a secret, which is told only once.
    `done`: the request had an effect, with which this was stored; `change`: the id of the change that it made, if any.
    """

    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    done = models.BooleanField(default=False, db_default=False)
    change = models.CharField(max_length=36, blank=True, default="", db_default="")
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        """At most one answer for each key of a principal."""

        constraints = (models.UniqueConstraint(fields=("actor", "key"), name="answer_key_once"),)

    def __str__(self) -> str:
        """The principal's id and the key."""
        return f"{self.actor} {self.key}"


class DomainEvent(models.Model):
    """An event that people may want to hear of. `handled_at`: when notifications were made of it; null before."""

    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=64)
    environment = models.CharField(max_length=64, blank=True, default="")
    subject = models.CharField(max_length=1200, blank=True, default="")
    payload = models.JSONField(default=dict)
    handled_at = models.DateTimeField(null=True)

    class Meta:
        """Events of which no notifications were made yet are looked up by a small index of their own."""

        indexes = (models.Index(fields=("id",), condition=models.Q(handled_at=None), name="event_pending"),)

    def __str__(self) -> str:
        """The kind and subject of the event."""
        return f"{self.kind} {self.subject}"

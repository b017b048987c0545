"""The audit log's table."""

from django.db import models
from django.utils import timezone

from controlplane.append_only import AppendOnly


class AuditEvent(AppendOnly):
    """Who did what to what, when, and by which request. Only ever added to."""

    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150)
    request_id = models.CharField(max_length=64, blank=True, default="")
    environment = models.CharField(max_length=64, blank=True, default="")
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=1200, blank=True, default="")
    detail = models.JSONField(default=dict)

    class Meta:
        """Read by environment, newest first."""

        indexes = (models.Index(fields=("environment", "id")),)

    def __str__(self) -> str:
        """One line for an operator."""
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.verb} {self.subject}"

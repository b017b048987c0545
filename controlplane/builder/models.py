"""The log of builds."""

from django.db import models
from django.utils import timezone


class BuildOutcome(models.TextChoices):
    """How a build ended."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    FENCED = "fenced"
    FAILED = "failed"


class Build(models.Model):
    """One run of the builder: which generations it covered, what came of it, and each stage's milliseconds."""

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="builds")
    from_generation = models.PositiveBigIntegerField()
    to_generation = models.PositiveBigIntegerField()
    epoch = models.PositiveBigIntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=BuildOutcome.choices)
    at = models.DateTimeField(default=timezone.now)
    stage_ms = models.JSONField(default=dict)
    detail = models.CharField(max_length=1000, blank=True, default="")
    held = models.JSONField(default=list)

    class Meta:
        """A change's epoch is looked up by generation (resolutions D6)."""

        indexes = (models.Index(fields=("environment", "to_generation")),)

    def __str__(self) -> str:
        """Its outcome."""
        return f"{self.outcome} at generation {self.to_generation}"

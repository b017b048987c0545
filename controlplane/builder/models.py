"""The log of builds."""

from django.db import models
from django.utils import timezone


class BuildOutcome(models.TextChoices):
    """How a build ended: it published a snapshot, it changed nothing, a newer build overtook it (fenced), or it
    failed.
    """

    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    FENCED = "fenced"
    FAILED = "failed"


class Build(models.Model):
    """One run of the builder: the generations it covered, how it ended, and the milliseconds that each stage took.

    `held` and `findings` are only the first names held back and the first findings; `held_count` and `finding_counts`
    (by code) count all.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="builds")
    from_generation = models.PositiveBigIntegerField()
    to_generation = models.PositiveBigIntegerField()
    epoch = models.PositiveBigIntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=BuildOutcome.choices)
    at = models.DateTimeField(default=timezone.now)
    stage_ms = models.JSONField(default=dict)
    detail = models.CharField(max_length=1000, blank=True, default="")
    held = models.JSONField(default=list)
    held_count = models.PositiveIntegerField(default=0)
    findings = models.JSONField(default=list)
    finding_counts = models.JSONField(default=dict)

    class Meta:
        """Builds are looked up by the generation they cover: the epoch of a change is that of the build that covered it
        (decisions D6).
        """

        indexes = (models.Index(fields=("environment", "to_generation")),)

    def __str__(self) -> str:
        """The build's outcome and the generation it covers."""
        return f"{self.outcome} at generation {self.to_generation}"


class HeldResource(models.Model):
    """A name that the newest build does not serve as written.

    `served`: whether an older revision is served instead.
    `kinds`: the only kinds of clients from which the newest revision is withheld; empty: it is held back for all.

    Written in the transaction that publishes, so that it always tells of the served snapshot.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="held")
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    served = models.BooleanField()
    reason = models.CharField(max_length=300)
    kinds = models.JSONField(default=list, db_default=[])
    findings = models.JSONField(default=list)
    generation = models.PositiveBigIntegerField()

    class Meta:
        """Constraint: at most one row for each type and name of an environment."""

        constraints = (models.UniqueConstraint(fields=("environment", "type", "name"), name="held_once"),)

    def __str__(self) -> str:
        """The type and name that is held back, and the reason."""
        return f"{self.type} {self.name}: {self.reason}"


class EnvoyRefusal(models.Model):
    """The complaint of one version of Envoy about one content that it was shown alone, kept so that Envoy is asked
    once.

    Written in the transaction that publishes a snapshot, for the contents that are the newest then.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    content = models.CharField(max_length=32)
    envoy = models.CharField(max_length=100)
    text = models.CharField(max_length=500)

    class Meta:
        """At most one row for each content of an environment."""

        constraints = (models.UniqueConstraint(fields=("environment", "content"), name="envoy_refusal_once"),)

    def __str__(self) -> str:
        """The refused content and Envoy's complaint."""
        return f"{self.content}: {self.text}"


class EnvoyAnswer(models.Model):
    """The answer of one version of Envoy to one configuration, of whatever environment (`deep.answers`).

    `question`: the hash of both.
    `text`: Envoy's complaint; empty where it accepts.
    """

    question = models.CharField(max_length=64, unique=True)
    refused = models.BooleanField()
    text = models.CharField(max_length=500)

    def __str__(self) -> str:
        """The hash of the question and the verdict."""
        return f"{self.question}: {'refused' if self.refused else 'accepted'}"

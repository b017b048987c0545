"""The table of snapshots."""

from django.db import models
from django.utils import timezone


class SnapshotRow(models.Model):
    """A snapshot: what one environment serves at one epoch. It holds the hashes of its chunks and of its access table,
    is signed, and never changes, but for its signatures when keys are replaced.

    `rollout`: the candidate side of the rollout that was open, None where none was. `rollout_mac` signs it together
    with everything else; `mac` leaves it out, so that a process of the version before verifies the rest and serves the
    stable side (rollouts.md R2).
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="snapshots")
    lineage = models.UUIDField()
    epoch = models.PositiveBigIntegerField()
    generation = models.PositiveBigIntegerField()
    root = models.ForeignKey("catalog.Blob", on_delete=models.RESTRICT, related_name="+")
    access = models.ForeignKey("catalog.Blob", on_delete=models.RESTRICT, related_name="+")
    counts = models.JSONField(default=dict)
    mac = models.CharField(max_length=96)
    rollout = models.ForeignKey("catalog.Blob", null=True, on_delete=models.RESTRICT, related_name="+")
    rollout_mac = models.CharField(max_length=96, default="", db_default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """At most one snapshot for each epoch of a lineage, the unbroken history of an environment's epochs."""

        db_table = "snapshots_snapshot"
        constraints = (
            models.UniqueConstraint(fields=("environment", "lineage", "epoch"), name="one_snapshot_per_epoch"),
        )

    def __str__(self) -> str:
        """The epoch, as text."""
        return f"epoch {self.epoch}"

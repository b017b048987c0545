"""The table of snapshots."""

from django.db import models
from django.utils import timezone


class SnapshotRow(models.Model):
    """A snapshot: what one environment serves at one epoch, as the address of its chunks and of its access table,
    signed. Never changed.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="snapshots")
    lineage = models.UUIDField()
    epoch = models.PositiveBigIntegerField()
    generation = models.PositiveBigIntegerField()
    root = models.ForeignKey("catalog.Blob", on_delete=models.RESTRICT, related_name="+")
    access = models.ForeignKey("catalog.Blob", on_delete=models.RESTRICT, related_name="+")
    counts = models.JSONField(default=dict)
    mac = models.CharField(max_length=96)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """At most one snapshot for each epoch of a lineage."""

        db_table = "snapshots_snapshot"
        constraints = (
            models.UniqueConstraint(fields=("environment", "lineage", "epoch"), name="one_snapshot_per_epoch"),
        )

    def __str__(self) -> str:
        """The snapshot's epoch."""
        return f"epoch {self.epoch}"

"""The tables of history. Private to this app's services and selectors.

A row is of one minute or, once it is old, of ten (`span_s`); `at` is when that time began. Small numbers and no texts:
what was said stands with the NACKs.
"""

from django.db import models

from controlplane.history.values import KIND_CHARS, LONG_S, MINUTE_S, What
from xdscore.resource_types import RESOURCE_TYPES

_TYPE_WORDS = tuple(kind.word for kind in RESOURCE_TYPES)
_SPANS = (MINUTE_S, LONG_S)
_COUNTED = (What.NACKS.value, What.ERRORS.value)


class FleetSample(models.Model):
    """How many clients of an environment stood in each state: the sum of `samples` looks, at most one a minute."""

    pk = models.CompositePrimaryKey("environment_id", "span_s", "at")
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+", db_index=False)
    span_s = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    samples = models.PositiveSmallIntegerField()
    nacked = models.PositiveBigIntegerField()
    sent = models.PositiveBigIntegerField()
    requested = models.PositiveBigIntegerField()
    acked = models.PositiveBigIntegerField()
    disconnected = models.PositiveBigIntegerField()

    class Meta:
        """Old rows are looked up by an index of their own. The database refuses a length that is not a known one."""

        indexes = (models.Index(fields=("span_s", "at"), name="fleet_sample_by_age"),)
        constraints = (models.CheckConstraint(condition=models.Q(span_s__in=_SPANS), name="fleet_sample_span_known"),)

    def __str__(self) -> str:
        """When the time began, and how many seconds it has."""
        return f"{self.at:%Y-%m-%d %H:%M} {self.span_s}s"


class Tally(models.Model):
    """How many NACKs clients of an environment sent, or errors they were told (`what`), of one type.

    `detail`: of NACKs the kind of the client (family and version), of errors the code.
    """

    pk = models.CompositePrimaryKey("environment_id", "what", "span_s", "at", "type", "detail")
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+", db_index=False)
    what = models.CharField(max_length=8)
    span_s = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    type = models.CharField(max_length=16)
    detail = models.CharField(max_length=KIND_CHARS)
    count = models.PositiveBigIntegerField()

    class Meta:
        """Old rows are looked up by an index of their own. The database refuses words that are not known ones."""

        indexes = (models.Index(fields=("span_s", "at"), name="tally_by_age"),)
        constraints = (
            models.CheckConstraint(condition=models.Q(what__in=_COUNTED), name="tally_what_known"),
            models.CheckConstraint(condition=models.Q(span_s__in=_SPANS), name="tally_span_known"),
            models.CheckConstraint(condition=models.Q(type__in=_TYPE_WORDS), name="tally_type_known"),
        )

    def __str__(self) -> str:
        """What was counted, and how many there were."""
        return f"{self.count} {self.what}"


class ReportedSpan(models.Model):
    """A time in which some ADS process reported, so that what it did not count did not happen. Of a time without such
    a row nobody knows.
    """

    pk = models.CompositePrimaryKey("span_s", "at")
    span_s = models.PositiveSmallIntegerField()
    at = models.DateTimeField()

    class Meta:
        """The database refuses a length that is not a known one."""

        constraints = (models.CheckConstraint(condition=models.Q(span_s__in=_SPANS), name="reported_span_known"),)

    def __str__(self) -> str:
        """When the time began, and how many seconds it has."""
        return f"{self.at:%Y-%m-%d %H:%M} {self.span_s}s"

"""The table of route cases. Private to this app's services and selectors."""

from django.db import models
from django.utils import timezone

from controlplane.routecases.values import NAME_CHARS, NOTE_CHARS

_AUTHOR_CHARS = 150
_VERSION_CHARS = 64


class RouteCase(models.Model):
    """A route case: a request, the end that is expected of it, and how it stands by what is written now.

    `revision`: counts the case's writes. `end`, `uses`: the end that was found last and what it follows from
    (`walking`); `judged_by`: the version of Parley that found it. `since`: the change by which the case came to hold,
    or to fail; None: since it was written, or so long ago that the change is not kept.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="route_cases")
    name = models.CharField(max_length=NAME_CHARS)
    request = models.JSONField()
    listener = models.CharField(max_length=1_024, blank=True, default="")
    client = models.JSONField(default=dict)
    expect = models.JSONField()
    blocking = models.BooleanField(default=True)
    note = models.CharField(max_length=NOTE_CHARS, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)
    created_by = models.CharField(max_length=_AUTHOR_CHARS)
    created_at = models.DateTimeField(default=timezone.now)
    author = models.CharField(max_length=_AUTHOR_CHARS)
    updated_at = models.DateTimeField(default=timezone.now)
    end = models.JSONField()
    uses = models.JSONField()
    holds = models.BooleanField()
    judged_by = models.CharField(max_length=_VERSION_CHARS)
    since = models.ForeignKey("catalog.Change", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        """Constraint: a name stands for one case of an environment. Its index finds the cases of an environment."""

        constraints = (models.UniqueConstraint(fields=("environment", "name"), name="route_case_name_once"),)

    def __str__(self) -> str:
        """The case's name."""
        return self.name

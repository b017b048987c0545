"""The tables of change sets. Private to this app's services and selectors."""

import uuid
from typing import Final

from django.db import models
from django.utils import timezone

from controlplane.access.choices import EditSubject
from controlplane.access.models import KEY_CHARS
from controlplane.changesets.values import (
    MAX_MESSAGE_CHARS,
    MAX_REASON_CHARS,
    MAX_TITLE_CHARS,
    OPEN_STATES,
    STORED_STATES,
    SetState,
    Verdict,
)
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS

_MAX_WAITS_CHARS: Final = 1_000


class ChangeSet(models.Model):
    """A set of edits that somebody proposes.

    `version` counts edits and submissions: what others say is of one version.
    `scheduled_by`, `scheduler`: the name and id of who scheduled it, whose rights count when its time comes;
    `accept_loss`: the loss that they accepted; `lineage`: that of the environment then.
    `waits_for`: what it waits for, or why it was not published at its time.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    title = models.CharField(max_length=MAX_TITLE_CHARS)
    message = models.CharField(max_length=MAX_MESSAGE_CHARS, blank=True, default="")
    state = models.CharField(max_length=16, choices=[(each.value, each.value) for each in STORED_STATES])
    version = models.PositiveIntegerField(default=1)
    base_generation = models.PositiveBigIntegerField()
    not_before = models.DateTimeField(null=True)
    expires = models.DateTimeField(null=True)
    scheduled_by = models.CharField(max_length=150, blank=True, default="")
    scheduler = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, default="")
    accept_loss = models.PositiveIntegerField(default=0)
    lineage = models.UUIDField(null=True)
    waits_for = models.CharField(max_length=_MAX_WAITS_CHARS, blank=True, default="")
    published_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    edited_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        """Constraints: the state is a known one, and what is scheduled has a time. The small index finds what the
        sweeper has to look at.
        """

        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=[each.value for each in STORED_STATES]), name="change_set_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state=SetState.SCHEDULED.value) | models.Q(not_before__isnull=False),
                name="change_set_scheduled_has_time",
            ),
        )
        indexes = (
            models.Index(fields=("environment", "-id"), name="change_set_newest"),
            models.Index(
                fields=("state",),
                condition=models.Q(state__in=[each.value for each in OPEN_STATES]),
                name="change_set_open",
            ),
        )

    def __str__(self) -> str:
        """What people call the change set: the words and the beginning of its public id."""
        return f"change set {str(self.public_id)[:8]}"


class ChangeSetAuthor(models.Model):
    """Somebody who made or edited a change set, the maker first: their name and id."""

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="authors", db_index=False)
    name = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS)

    class Meta:
        """Constraint: a change set has an author once."""

        constraints = (models.UniqueConstraint(fields=("change_set", "principal"), name="change_set_author_once"),)

    def __str__(self) -> str:
        """The author's name, as it was then."""
        return self.name


class ChangeSetEntry(models.Model):
    """A resource that a change set writes; without a `blob` it deletes it. `base`: the revision that it was made from;
    0: there was none. `labels`: those that its manifest says it has; null where that says nothing of labels.
    """

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="entries", db_index=False)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    blob = models.ForeignKey("catalog.Blob", on_delete=models.RESTRICT, null=True, related_name="+")
    ttl_ms = models.PositiveBigIntegerField(default=0)
    base = models.PositiveIntegerField()
    labels = models.JSONField(null=True)

    class Meta:
        """Constraint: a change set has a name once."""

        constraints = (models.UniqueConstraint(fields=("change_set", "type", "name"), name="change_set_name_once"),)

    def __str__(self) -> str:
        """The type and the name."""
        return f"{self.type} {self.name}"


class ChangeSetWish(models.Model):
    """An access rule or client group that a change set writes; without a `draft` it deletes it.

    `name`: what people call it: the number of a rule, the key of a group, and `new-1` for the first rule to be made.
    `subject_id`: its row id; none where it is to be made. `base`: how many edits of it there were when the set was made
    from it; 0: there was none. `before`: its JSON then, as the history of access has it.
    """

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="wishes", db_index=False)
    subject = models.CharField(max_length=8, choices=[(each.value, each.value) for each in EditSubject])
    name = models.CharField(max_length=KEY_CHARS)
    subject_id = models.BigIntegerField(null=True)
    draft = models.JSONField(null=True)
    base = models.PositiveIntegerField()
    before = models.JSONField(null=True)

    class Meta:
        """Constraint: a change set has a rule or group once."""

        constraints = (models.UniqueConstraint(fields=("change_set", "subject", "name"), name="change_set_wish_once"),)

    def __str__(self) -> str:
        """The word for it, and what people call it."""
        return f"{self.subject} {self.name}"


class ChangeSetRemark(models.Model):
    """What somebody said of a change set at one of its versions. Never changed, and removed only with its set."""

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="remarks")
    version = models.PositiveIntegerField()
    verdict = models.CharField(max_length=16, choices=[(each.value, each.value) for each in Verdict])
    author = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS)
    text = models.CharField(max_length=MAX_REASON_CHARS, blank=True, default="")
    type = models.CharField(max_length=16, blank=True, default="")
    name = models.CharField(max_length=1024, blank=True, default="")
    line = models.PositiveIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraint: of one version, somebody's approval counts once."""

        constraints = (
            models.UniqueConstraint(
                fields=("change_set", "version", "principal"),
                condition=models.Q(verdict=Verdict.APPROVED.value),
                name="change_set_approved_once",
            ),
        )

    def __str__(self) -> str:
        """What was said, in a word."""
        return self.verdict


class ChangeSetChange(models.Model):
    """A change as which a change set was published. A change is of one change set, so that none is published twice."""

    change = models.OneToOneField("catalog.Change", on_delete=models.CASCADE, primary_key=True, related_name="+")
    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="changes")

    def __str__(self) -> str:
        """The row id of the change."""
        return f"change {self.change_id}"

"""The catalogue's tables (decisions part 5). Private to this app's services and selectors.

Addresses of blobs are BLAKE2b-128 in hex, so that they read the same in a query, a log line and an ETag.
"""

import uuid
from enum import Enum

from django.db import models
from django.utils import timezone

from controlplane.catalog.choices import (
    BlobKind,
    ChangeKind,
    QuarantineCause,
    QuarantinePolicy,
    StagedChangeState,
    StagedState,
)
from controlplane.catalog.sealing import MARK_CHARS
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.database.append_only import AppendOnly
from xdscore.access import Effect

ENVIRONMENT_KEY_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


def _choices(kind: type[Enum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in kind]


# A default that hides would be a default that lies to operators too: an environment allows or denies.
DEFAULT_EFFECTS = (Effect.ALLOW.value, Effect.DENY.value)


class Environment(models.Model):
    """An environment: its settings, and the numbers of its writes and snapshots.

    `generation` counts writes, `built_generation` is the last one that a build covered: while they differ a build is
    due (decisions D6, C19). `epoch` numbers snapshots within `lineage`, an id that is renewed where the database went
    back (D5b).
    """

    key = models.CharField(max_length=63, unique=True)
    position = models.PositiveIntegerField(unique=True)
    selectors = models.JSONField(default=list)
    node_ids = models.JSONField(default=list)
    default_effect = models.CharField(
        max_length=8, choices=[(value, value) for value in DEFAULT_EFFECTS], default=Effect.DENY.value
    )
    quarantine = models.CharField(
        max_length=16, choices=_choices(QuarantinePolicy), default=QuarantinePolicy.SUGGEST.value
    )
    hold_reason = models.CharField(max_length=500, blank=True, default="")
    content = models.JSONField(default=dict)  # kind of dangerous content -> stance; what is absent is refused
    deep_validation = models.BooleanField(default=False, db_default=False)  # asked of an Envoy: `builder.deep`
    require_if_match = models.BooleanField(default=False, db_default=False)  # decisions C25
    # From how many losing clients on a write has to say that it means it (`catalog.guarding.LossThreshold`).
    loss_access_clients = models.PositiveIntegerField(default=1, db_default=1)
    loss_other_percent = models.PositiveSmallIntegerField(default=10, db_default=10)
    rollout = models.JSONField(null=True)  # `catalog.rollout_settings`; null: it never had rollouts
    freezes = models.JSONField(default=list, db_default=[])  # `catalog.freezes`
    review = models.JSONField(default=dict, db_default={})  # `catalog.review.ReviewSettings`; empty: the defaults
    lineage = models.UUIDField(default=uuid.uuid4)
    generation = models.PositiveBigIntegerField(default=0)
    built_generation = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraint: no build covers a generation that was never written."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(built_generation__lte=models.F("generation")), name="built_at_most_generation"
            ),
            models.CheckConstraint(condition=models.Q(default_effect__in=DEFAULT_EFFECTS), name="default_effect_known"),
            models.CheckConstraint(
                condition=models.Q(quarantine__in=[policy.value for policy in QuarantinePolicy]),
                name="quarantine_policy_known",
            ),
        )

    def __str__(self) -> str:
        """The environment's key."""
        return self.key


class Blob(models.Model):
    """Bytes with their hash as address. A secret's bytes are encrypted, and `hash` is that of the plaintext under a key
    (D18).
    """

    hash = models.CharField(max_length=32, primary_key=True)
    kind = models.CharField(max_length=16, choices=_choices(BlobKind))
    size = models.PositiveIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        """The blob's kind and address."""
        return f"{self.kind} {self.hash}"


class LastingKey(models.Model):
    """A table with one row: the two keys that stay the same when the encryption keys are rotated, encrypted under the
    first of those (`lasting`, D18).
    """

    sealed = models.BinaryField()

    def __str__(self) -> str:
        """A fixed text, so that no log shows the keys."""
        return "lasting keys"


class KeyMark(models.Model):
    """The id of an encryption key under which something is stored, or will be; it does not tell the key. The newest has
    the highest row id (`key_marks`).
    """

    mark = models.CharField(max_length=MARK_CHARS, unique=True)

    def __str__(self) -> str:
        """The id of the key."""
        return self.mark


class Change(AppendOnly):
    """One atomic set of edits: everything written at one generation of an environment.

    `back_to`: of a rollback, the generation at which the resources were what it made them again (`catalog.rollbacks`).
    `loss`: what connected clients lost by the change (`catalog.guarding.Loss`); null where they lost nothing.
    `author`, `principal`: the name that who made it had then, and their id (`principal_ids.PrincipalId`), which is
    empty of changes older than ids.
    `undo`: the values to put back, where revisions and access edits do not hold them.
    `undoes`: the public id of the change that this one took back.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="changes")
    generation = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=16, choices=_choices(ChangeKind))
    author = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, default="", db_default="")
    message = models.CharField(max_length=1000, blank=True, default="")
    owner = models.CharField(max_length=150, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    findings = models.JSONField(default=list)
    back_to = models.PositiveBigIntegerField(null=True)
    loss = models.JSONField(null=True)
    undo = models.JSONField(null=True)
    undoes = models.CharField(max_length=36, blank=True, default="", db_default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraint: one change for each generation. The small indexes find changes that are rare: rollbacks, undos,
        and those by which clients lost something.
        """

        constraints = (
            models.UniqueConstraint(fields=("environment", "generation"), name="one_change_per_generation"),
            models.CheckConstraint(
                condition=models.Q(back_to=None) | models.Q(back_to__lt=models.F("generation")), name="back_to_earlier"
            ),
        )
        indexes = (
            models.Index(
                fields=("environment", "generation"),
                condition=models.Q(back_to__isnull=False),
                name="change_rollbacks",
            ),
            models.Index(fields=("environment", "generation"), condition=models.Q(undoes__gt=""), name="change_undoes"),
            models.Index(
                fields=("environment", "generation"), condition=models.Q(loss__isnull=False), name="change_losses"
            ),
        )

    def __str__(self) -> str:
        """The change's public id."""
        return str(self.public_id)


class Resource(models.Model):
    """A name of a type in an environment.

    `counter` numbers its revisions and goes on after a deletion (U19). `touched` is the last generation at which the
    row, its newest or proven revision, or a quarantine of either changed: a builder that knows generation g reads only
    rows touched later. `labels`: `xdscore.labels.packed`.
    """

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="resources")
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    owner = models.CharField(max_length=150, blank=True, default="")
    labels = models.TextField(blank=True, default="", db_default="")
    counter = models.PositiveIntegerField(default=0)
    deleted = models.BooleanField(default=False)
    touched = models.PositiveBigIntegerField(default=0)
    head = models.ForeignKey("Revision", on_delete=models.RESTRICT, null=True, related_name="+")
    proven = models.ForeignKey("Revision", on_delete=models.RESTRICT, null=True, related_name="+")

    class Meta:
        """Constraint: an environment has at most one row for a type and name."""

        constraints = (models.UniqueConstraint(fields=("environment", "type", "name"), name="resource_name_once"),)
        indexes = (
            models.Index(fields=("environment", "type", "owner")),
            models.Index(fields=("environment", "touched"), name="resource_touched"),
        )

    def __str__(self) -> str:
        """The resource's type and name."""
        return f"{self.type} {self.name}"


class Revision(AppendOnly):
    """The content of a resource from one change on; without a `blob` the change deleted the resource. Never changed,
    never removed.

    `size` is in bytes. `claims` has, one a line, the addresses and domains that the resource wants to itself
    (`xdscore.schema.claims`). `expires_at`: when the first of its certificates expires.
    """

    resource = models.ForeignKey(Resource, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    change = models.ForeignKey(Change, on_delete=models.RESTRICT, related_name="revisions")
    blob = models.ForeignKey(Blob, on_delete=models.RESTRICT, null=True, related_name="+")
    version = models.CharField(max_length=32, blank=True, default="")
    size = models.PositiveIntegerField(default=0)
    eds_name = models.CharField(max_length=1024, blank=True, default="")
    claims = models.TextField(blank=True, default="")
    ttl_ms = models.PositiveBigIntegerField(default=0)
    findings = models.JSONField(default=list)
    expiries = models.JSONField(null=True)  # `catalog.expiry`
    expires_at = models.DateTimeField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraint: revisions are numbered from 1 within a resource."""

        constraints = (models.UniqueConstraint(fields=("resource", "number"), name="revision_number_once"),)
        indexes = (
            models.Index(
                fields=("expires_at",), condition=models.Q(expires_at__isnull=False), name="revision_expires_at"
            ),
        )

    def __str__(self) -> str:
        """The letter r and the revision's number, as in its ETag."""
        return f"r{self.number}"


class Reference(models.Model):
    """A resource that a revision refers to: one row however many fields name it. `pointer` leads to the first such
    field.

    `to_name` is any name a manifest holds, so it may be longer than a resource's can be.
    """

    # Without an index of its own: that of the constraint starts with it.
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="references", db_index=False)
    to_type = models.CharField(max_length=16)
    to_name = models.CharField(max_length=1024)
    pointer = models.CharField(max_length=1024, blank=True, default="")

    class Meta:
        """The index finds references by the resource they lead to."""

        constraints = (models.UniqueConstraint(fields=("revision", "to_type", "to_name"), name="reference_once"),)
        indexes = (models.Index(fields=("to_type", "to_name"), name="reference_target"),)

    def __str__(self) -> str:
        """The type and name of the resource that is referred to."""
        return f"{self.to_type} {self.to_name}"


class RevisionProof(models.Model):
    """The time when a client first acknowledged a response that held this revision. A table of its own, because rows of
    revisions never change.
    """

    revision = models.OneToOneField(Revision, on_delete=models.CASCADE, primary_key=True, related_name="proof")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        """The row id of the proven revision."""
        return f"proof of revision {self.revision_id}"


class ExpiryNotice(models.Model):
    """A note that people were told that a certificate of this revision expires, `days` before it did."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="expiry_notices")
    days = models.PositiveSmallIntegerField()

    class Meta:
        """Constraint: at most one notice for each revision and number of days."""

        constraints = (models.UniqueConstraint(fields=("revision", "days"), name="expiry_notice_once"),)

    def __str__(self) -> str:
        """The row id of the revision, and the number of days before its certificate expires."""
        return f"revision {self.revision_id}, {self.days} days before"


class Quarantine(models.Model):
    """A revision that is not served in its environment: the last proven one is served instead or, without one, clients
    are told why nothing is.

    `refused_by` and `accepted_by` hold, by kind of client, the hashes (`client_mark`) of the clients that refused the
    revision, and of those that took it when they were let try it (`catalog.withholding`).
    """

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="quarantines")
    cause = models.CharField(max_length=16, choices=_choices(QuarantineCause))
    incident = models.CharField(max_length=36, blank=True, default="")
    reason = models.CharField(max_length=500)
    refused_by = models.JSONField(default=dict, db_default={})
    accepted_by = models.JSONField(default=dict, db_default={})
    opened_at = models.DateTimeField(default=timezone.now)
    opened_by = models.CharField(max_length=150)
    released_at = models.DateTimeField(null=True, blank=True)
    released_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        """Constraint: a revision has at most one quarantine that is not released."""

        constraints = (
            models.UniqueConstraint(
                fields=("revision",), condition=models.Q(released_at=None), name="one_open_quarantine"
            ),
        )

    def __str__(self) -> str:
        """The reason of the quarantine."""
        return self.reason


class StagedName(models.Model):
    """A resource whose newest revision is not what the stable side has; there is no row for any other (rollouts.md,
    "Words").

    `stable`: the revision that the stable side serves. Null: there was none before; a deletion: nothing is served.
    `since`: the generation at which the resource came into this state.
    """

    resource = models.OneToOneField(Resource, on_delete=models.CASCADE, primary_key=True, related_name="staged")
    stable = models.ForeignKey(Revision, on_delete=models.RESTRICT, null=True, related_name="+")
    state = models.CharField(max_length=16, choices=_choices(StagedState))
    since = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        """The row id of the resource, and the state."""
        return f"resource {self.resource_id}, {self.state}"


class UnpromotedRevision(models.Model):
    """A revision that was staged and overwritten before a rollout promoted it. Whoever acknowledged it, nothing falls
    back to it (rollouts.md R6).
    """

    revision = models.OneToOneField(Revision, on_delete=models.CASCADE, primary_key=True, related_name="unpromoted")

    def __str__(self) -> str:
        """The row id of the revision."""
        return f"revision {self.revision_id}, never promoted"


class CandidateSide(models.Model):
    """The candidate side of an environment, which exists while a rollout is open. `table`: which clients are on it
    (`xdscore.sides.RolloutTable`).
    """

    environment = models.OneToOneField(
        Environment, on_delete=models.CASCADE, primary_key=True, related_name="candidate_side"
    )
    rollout = models.UUIDField()
    table = models.JSONField()

    def __str__(self) -> str:
        """The public id of the rollout."""
        return str(self.rollout)


class Rehearsal(models.Model):
    """Manifests that some clients are sent for a moment, beside what the stable side has (rollouts.md "Rehearsal").

    `table`: which clients these are (`xdscore.sides.RolloutTable`).
    `ends_at`: when it ends at the latest, whoever made it, by the clock of the database. `closed_at`: when it ended; a
    row stays for some minutes after that, so that its contents do.
    """

    public_id = models.UUIDField(unique=True)
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+", db_index=False)
    table = models.JSONField()
    ends_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        """At most one rehearsal is open in an environment (rollouts.md, settled question 9)."""

        constraints = (
            models.UniqueConstraint(
                fields=("environment",), condition=models.Q(closed_at=None), name="one_open_rehearsal"
            ),
        )
        indexes = (models.Index(fields=("closed_at",), name="rehearsal_closed"),)

    def __str__(self) -> str:
        """What people call the rehearsal: the word and the beginning of its public id."""
        return f"rehearsal {str(self.public_id)[:8]}"


class RehearsedName(models.Model):
    """What a rehearsal has of one name. `blob`: null where it deletes the name. `needs`: the (type, name) pairs that
    the content refers to. `held`: why the content cannot be sent to anybody, in a sentence; empty where it can.
    """

    rehearsal = models.ForeignKey(Rehearsal, on_delete=models.CASCADE, related_name="names", db_index=False)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    blob = models.ForeignKey(Blob, on_delete=models.RESTRICT, null=True, related_name="+")
    version = models.CharField(max_length=32, blank=True, default="")
    size = models.PositiveIntegerField(default=0)
    eds_name = models.CharField(max_length=1024, blank=True, default="")
    claims = models.TextField(blank=True, default="")
    needs = models.JSONField(default=list)
    held = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        """Constraint: a rehearsal has a name once."""

        constraints = (models.UniqueConstraint(fields=("rehearsal", "type", "name"), name="rehearsed_name_once"),)

    def __str__(self) -> str:
        """The type and the name."""
        return f"{self.type} {self.name}"


class StagedChange(models.Model):
    """A change of which something was staged.

    `rollout`: the rollout that has it, or had it last.
    `promoted_generation`: the generation at which nothing of it was staged any more.
    """

    change = models.OneToOneField(Change, on_delete=models.CASCADE, primary_key=True, related_name="staged")
    state = models.CharField(max_length=16, choices=_choices(StagedChangeState))
    rollout = models.UUIDField(null=True)
    promoted_generation = models.PositiveBigIntegerField(null=True)

    class Meta:
        """The index finds the few changes that are still on their way, and those of a rollout."""

        indexes = (
            models.Index(
                fields=("state",),
                condition=~models.Q(state=StagedChangeState.PROMOTED.value),
                name="staged_change_open",
            ),
            models.Index(fields=("rollout",), condition=models.Q(rollout__isnull=False), name="staged_change_rollout"),
        )

    def __str__(self) -> str:
        """The row id of the change, and the state."""
        return f"change {self.change_id}, {self.state}"


class SideMove(models.Model):
    """A generation of an environment at which no change was written, but clients or names moved between the sides: a
    step, a promotion, the opening or the end of a rollout. `public_id` tells it from the move of the same generation
    that a restored database lost (decisions D5b).
    """

    public_id = models.UUIDField(default=uuid.uuid4)
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+", db_index=False)
    generation = models.PositiveBigIntegerField()

    class Meta:
        """Constraint: one move for each generation."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "generation"), name="one_side_move_per_generation"),
        )

    def __str__(self) -> str:
        """The move's public id."""
        return str(self.public_id)

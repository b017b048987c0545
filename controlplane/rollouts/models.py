"""The tables of rollouts. Private to this app's services and selectors.

State is in the database alone: any worker may go on with a rollout where another one was killed (rollouts.md R12).
"""

import uuid
from enum import Enum

from django.db import models

from controlplane.clients.identity import CLIENT_ID_CHARS
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.rollouts.values import OPEN_STATES, Outcome, ResourceOutcome, RolloutState, Why
from xdscore.resource_types import RESOURCE_TYPES

TYPE_WORDS = tuple(kind.word for kind in RESOURCE_TYPES)
KIND_CHARS = 32
DIGEST_CHARS = 32


def _values(kind: type[Enum]) -> list[str]:
    return [member.value for member in kind]


def _choices(kind: type[Enum]) -> list[tuple[str, str]]:
    return [(value, value) for value in _values(kind)]


class Rollout(models.Model):
    """The way of a set of staged changes from candidate to stable.

    `settings`, `groups`: those of the environment, and the client groups of its steps, as they were when it opened.
    `steps`: of each step, whom it means and how it went (`services.steps`). `step`: the number of the present one, from
        0. `permille`, `seed`: of the table.
    `generation`: that of the environment which its last move counted; `served_generation`: the newest of those that the
        fleet could be sent. `evidence_at`: since when answers to the present step are waited for; null until it could
        be sent. `moved_at`: when it came to be what answers are waited for; clients may be sent it a moment before
        that is noted, and die of it.
    `lineage`: of the environment, when it opened or was resumed.
    `outcome`, `reasons`, `waits_for`, `until`, `counts`, `uncovered`: of the newest verdict.
    `last_act`: what a person did last, at which step; the same again changes nothing.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    mode = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=_choices(RolloutState))
    settings = models.JSONField()
    groups = models.JSONField(default=list)
    steps = models.JSONField()
    step = models.PositiveSmallIntegerField(default=0)
    permille = models.PositiveSmallIntegerField(default=0)
    seed = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField()
    served_generation = models.PositiveBigIntegerField(default=0)
    evidence_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField()
    lineage = models.UUIDField()
    outcome = models.CharField(max_length=16, choices=_choices(Outcome), blank=True, default="")
    reasons = models.JSONField(default=list)
    waits_for = models.CharField(max_length=500, blank=True, default="")
    until = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)
    control = models.PositiveIntegerField(default=0)
    uncovered = models.JSONField(default=list)
    authors = models.JSONField(default=list)
    last_act = models.CharField(max_length=32, blank=True, default="")
    paused_because = models.CharField(max_length=500, blank=True, default="")
    ended_because = models.CharField(max_length=500, blank=True, default="")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        """At most one rollout is open in an environment (rollouts.md "Words")."""

        constraints = (
            models.UniqueConstraint(
                fields=("environment",),
                condition=models.Q(state__in=[state.value for state in OPEN_STATES]),
                name="one_open_rollout",
            ),
            models.CheckConstraint(condition=models.Q(state__in=_values(RolloutState)), name="rollout_state_known"),
            models.CheckConstraint(
                condition=models.Q(outcome__in=["", *_values(Outcome)]), name="rollout_outcome_known"
            ),
        )
        indexes = (models.Index(fields=("environment", "-id"), name="rollout_newest"),)

    def __str__(self) -> str:
        """What people call the rollout: the word and the beginning of its public id."""
        return f"rollout {str(self.public_id)[:8]}"


class RolloutResource(models.Model):
    """A resource of a rollout. `from_revision`: null where the stable side had nothing; `to_revision`: null where it is
    a deletion. `change`, `author`: of the newest revision. `incident`, `because`: where it was taken back.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="resources", db_index=False)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    from_revision = models.PositiveIntegerField(null=True)
    to_revision = models.PositiveIntegerField(null=True)
    revision = models.PositiveIntegerField()
    outcome = models.CharField(max_length=16, choices=_choices(ResourceOutcome))
    change = models.CharField(max_length=36)
    author = models.CharField(max_length=150)
    incident = models.CharField(max_length=36, blank=True, default="")
    because = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        """At most one row for each name of a rollout. Resources are looked up by their change, too."""

        constraints = (
            models.UniqueConstraint(fields=("rollout", "type", "name"), name="rollout_name_once"),
            models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="rollout_type_known"),
        )
        indexes = (
            models.Index(fields=("change",), name="rollout_resource_change"),
            models.Index(
                fields=("rollout",),
                condition=models.Q(outcome=ResourceOutcome.REVERTED.value, incident=""),
                name="rollout_without_incident",
            ),
        )

    def __str__(self) -> str:
        """The type, name and outcome."""
        return f"{self.type} {self.name} {self.outcome}"


class RolloutChange(models.Model):
    """A change of which something is, or was, in a rollout."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="changes", db_index=False)
    change = models.CharField(max_length=36, db_index=True)

    class Meta:
        """Constraint: a change is in a rollout once."""

        constraints = (models.UniqueConstraint(fields=("rollout", "change"), name="rollout_change_once"),)

    def __str__(self) -> str:
        """The public id of the change."""
        return self.change


class RolloutPick(models.Model):
    """A client that was chosen for the cohort, one by one, with a copy of its names, because it may be forgotten.

    `step`: with which step. `asked_at`: since when it could be sent what differs; null until then. `state`: what it had
    said when the rollout ended; empty before.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="picks", db_index=False)
    client = models.CharField(max_length=CLIENT_ID_CHARS)
    digest = models.CharField(max_length=DIGEST_CHARS)
    identity = models.CharField(max_length=2048, blank=True)
    node_id = models.CharField(max_length=1024)
    kind = models.CharField(max_length=KIND_CHARS)
    why = models.CharField(max_length=16, choices=_choices(Why))
    because = models.CharField(max_length=300)
    step = models.PositiveSmallIntegerField()
    asked_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, blank=True, default="")

    class Meta:
        """Constraint: a client is picked once."""

        constraints = (models.UniqueConstraint(fields=("rollout", "client"), name="rollout_pick_once"),)

    def __str__(self) -> str:
        """The client's node id."""
        return self.node_id


class RolloutVerdict(models.Model):
    """A verdict with the facts that it rests on, compressed (rollouts.md R11). `facts`: empty while answers were
    awaited, and where they are too large to be kept. At most `services.keeping.MAX_KEPT` rows for each rollout.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="verdicts", db_index=False)
    step = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    outcome = models.CharField(max_length=16, choices=_choices(Outcome), blank=True)
    reasons = models.JSONField()
    counts = models.JSONField()
    facts = models.BinaryField()

    class Meta:
        """Verdicts are read in the order in which they were given."""

        indexes = (models.Index(fields=("rollout", "id"), name="verdict_by_rollout"),)

    def __str__(self) -> str:
        """The outcome and the step."""
        return f"{self.outcome or 'none yet'} at step {self.step}"


class RolloutApproval(models.Model):
    """The word of a person that a step may go on. `void`: whether something changed after that, so that it is asked for
    again (rollouts.md, settled question 6).
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="approvals", db_index=False)
    step = models.PositiveSmallIntegerField()
    by = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField()
    void = models.BooleanField(default=False)

    class Meta:
        """Approvals are looked up by rollout and step."""

        indexes = (models.Index(fields=("rollout", "step"), name="approval_by_step"),)

    def __str__(self) -> str:
        """Who approved which step."""
        return f"{self.by}, step {self.step}"

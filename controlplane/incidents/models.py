"""The tables of incidents (decisions part 5). Private to this app's services and selectors."""

import uuid
from enum import Enum

from django.db import models

from controlplane.clients.identity import CLIENT_ID_CHARS
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.fingerprint import FINGERPRINT_CHARS
from controlplane.incidents.muting import MAX_MUTE_REASON_CHARS
from controlplane.incidents.values import IncidentCause, IncidentState
from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.shares import ACCOUNTABLE_CHARS

TYPE_WORDS = tuple(kind.word for kind in RESOURCE_TYPES)


def _values(kind: type[Enum]) -> list[str]:
    return [member.value for member in kind]


class Incident(models.Model):
    """NACKs with one fingerprint, or what connected clients lost by one change; `cause` tells which.

    `revision`, `version`: the newest refused content of `name`; `since`: when that revision was written.
    `change`, `author`: of the first revision that was refused since the incident was opened.
    `suspects`: [name, version] of each, where `name` is empty because no culprit is known.
    `nacked`, `sent`: how many clients refuse and were sent that content, counted at `judged_at`.
    `verdict`: what that means for all clients; `verdict_asks`: whether a person should decide.
    `settles_at`: until when it is judged again, because NACKs still come in.
    `told_nacked`: how many refused when people were last told.
    `assignee`: the name of who is to look after it: a person, a token, or, with `assigned_team`, an owner of resources.
        `assigned_to`: the id (`principal_ids.PrincipalId`) of the person or token; empty for a team, and where an
        earlier version wrote it. `assignee_gone`: they may not see it any more.
    `muted_until`: until when channels are told nothing of it, by whom and why; null while it is not muted.
    `wordings`: in which words it was refused so far (`muting.wording`), separated by blanks.
    `mended_by`: who said that the next revision of the resource mends it; empty where nobody did.
    `opened_by`: the key of whoever is accountable for it (`xdscore.shares`); empty where an earlier version opened it.

    For a loss: `loss` is what the change stores of it (`catalog.guarding.Loss`), `type` and `name` what most clients
    lost, `nacked` and `sent` how many clients lost something and were connected; there is no revision and no verdict.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    cause = models.CharField(
        max_length=16,
        choices=[(value, value) for value in _values(IncidentCause)],
        default=IncidentCause.NACK.value,
        db_default=IncidentCause.NACK.value,
    )
    algorithm = models.CharField(max_length=8)
    fingerprint = models.CharField(max_length=FINGERPRINT_CHARS)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024, blank=True)
    family = models.CharField(max_length=16)
    confidence = models.CharField(max_length=16, choices=[(value, value) for value in _values(Confidence)])
    message = models.TextField(blank=True)
    normalised = models.TextField(blank=True)
    suspects = models.JSONField(default=list)
    state = models.CharField(
        max_length=16, choices=[(value, value) for value in _values(IncidentState)], default=IncidentState.OPEN.value
    )
    assignee = models.CharField(max_length=150, blank=True, db_default="")
    assigned_to = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, db_default="")
    assigned_team = models.BooleanField(default=False, db_default=False)
    assignee_gone = models.BooleanField(default=False, db_default=False)
    muted_until = models.DateTimeField(null=True)
    muted_by = models.CharField(max_length=150, blank=True, db_default="")
    muted_reason = models.CharField(max_length=MAX_MUTE_REASON_CHARS, blank=True, db_default="")
    wordings = models.TextField(blank=True, default="", db_default="")
    mended_by = models.CharField(max_length=150, blank=True, db_default="")
    opened_by = models.CharField(max_length=ACCOUNTABLE_CHARS, blank=True, db_default="")
    change = models.CharField(max_length=36, blank=True)
    author = models.CharField(max_length=150, blank=True)
    revision = models.PositiveIntegerField(default=0)
    version = models.CharField(max_length=64, blank=True)
    since = models.DateTimeField()
    nacked = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)
    opened_epoch = models.PositiveBigIntegerField()
    resolved_epoch = models.PositiveBigIntegerField(null=True)
    checked_generation = models.PositiveBigIntegerField(default=0)
    settles_at = models.DateTimeField()
    judged_at = models.DateTimeField(null=True)
    told_nacked = models.PositiveIntegerField(db_default=0)
    verdict = models.CharField(max_length=16, blank=True, db_default="")
    verdict_reason = models.CharField(max_length=300, blank=True, db_default="")
    verdict_asks = models.BooleanField(db_default=False)
    quarantined_revision = models.PositiveIntegerField(default=0)
    forced_revision = models.PositiveIntegerField(default=0)
    loss = models.JSONField(null=True)

    class Meta:
        """At most one incident for each fingerprint in an environment. Unresolved ones are looked up by an index of
        their own, and so are those about one resource: a list of resources asks for each whether it is refused; and
        the few that are muted, each second.
        """

        constraints = (
            models.UniqueConstraint(
                fields=("environment", "algorithm", "fingerprint"), name="one_incident_per_fingerprint"
            ),
            models.CheckConstraint(condition=models.Q(cause__in=_values(IncidentCause)), name="incident_cause_known"),
            models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="incident_type_known"),
            models.CheckConstraint(condition=models.Q(state__in=_values(IncidentState)), name="incident_state_known"),
            models.CheckConstraint(
                condition=models.Q(confidence__in=_values(Confidence)), name="incident_confidence_known"
            ),
            models.CheckConstraint(condition=models.Q(family__in=_values(ClientFamily)), name="incident_family_known"),
        )
        indexes = (
            models.Index(fields=("environment", "state"), name="incident_by_state"),
            models.Index(fields=("environment", "type", "name"), name="incident_by_name"),
            models.Index(fields=("muted_until",), condition=models.Q(muted_until__isnull=False), name="incident_muted"),
        )

    def __str__(self) -> str:
        """The type and name that the incident is about, and its state."""
        return f"{self.type} {self.name or '?'} {self.state}"


class IncidentClient(models.Model):
    """A client that refused, with the newest revision it refused and how often; for a loss, a client that lost
    something. It has a copy of the client's names, because the client may be deleted earlier.

    `now`: what the client has since its last refusal, in words (`afterwards`); empty where that is not known.
    `accountable`: the key of whoever is accountable for its last refusal (`xdscore.shares`); empty for a loss, and
        where an earlier version counted it.
    """

    pk = models.CompositePrimaryKey("incident_id", "client")
    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="clients", db_index=False)
    client = models.CharField(max_length=CLIENT_ID_CHARS)
    identity = models.CharField(max_length=2048, blank=True)
    node_id = models.CharField(max_length=1024)
    revision = models.PositiveIntegerField(default=0)
    now = models.CharField(max_length=100, blank=True, db_default="")
    accountable = models.CharField(max_length=ACCOUNTABLE_CHARS, blank=True, db_default="")
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        """The client's node id."""
        return self.node_id


class IncidentNack(models.Model):
    """One of the first NACKs of an incident, kept as an example with the client's own words."""

    pk = models.CompositePrimaryKey("incident_id", "nack_id")
    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="samples", db_index=False)
    nack = models.ForeignKey("clients.Nack", on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        """The id of the NACK."""
        return f"sample {self.nack_id}"


class LossMark(models.Model):
    """The generation up to which an environment's changes were searched for what clients lost by them."""

    environment = models.OneToOneField(
        "catalog.Environment", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    generation = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        """The generation up to which the changes were searched."""
        return f"generation {self.generation}"


class SettledMark(models.Model):
    """The generation up to which the log tells how an environment's changes ended. `open`: the generations before it of
    changes that have not ended, separated by blanks.
    """

    environment = models.OneToOneField(
        "catalog.Environment", on_delete=models.CASCADE, primary_key=True, related_name="settled_mark"
    )
    generation = models.PositiveBigIntegerField()
    open = models.TextField(blank=True, default="", db_default="")

    def __str__(self) -> str:
        """The generation up to which the log tells how changes ended."""
        return f"generation {self.generation}"

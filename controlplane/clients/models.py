"""The tables of facts (decisions part 5). Private to this app's services and selectors.

Rows are keyed by what an ADS process knows without asking: the id of its stream, the id of a client
(`identity.client_id`), the hash of a set of names. What a client was told is not stored but derived (decision 1);
subscriptions are interned name sets (decision 2).
"""

from enum import Enum

from django.db import models

from controlplane.clients.comparing import DifferenceKind
from controlplane.clients.facts import HASH_CHARS, SubscriptionState
from controlplane.clients.identity import CLIENT_ID_CHARS
from xdscore.client_kinds import ClientFamily
from xdscore.evidence import Evidence
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.said import SaidSource, SaidState
from xdscore.shares import ACCOUNTABLE_CHARS

STREAM_ID_CHARS = 32
VERSION_CHARS = 64
TYPE_WORDS = tuple(kind.word for kind in RESOURCE_TYPES)
VARIANTS = ("sotw", "delta")


def _values(kind: type[Enum]) -> list[str]:
    return [member.value for member in kind]


class Replica(models.Model):
    """One ADS process. Silent for longer than `services.SILENT_S` means dead; `stopped_at` is its own last word.

    `fleet_batches` counts its writes by which clients, streams or subscriptions became others; it stays 0 while a
    version before writes, which does not count. `place`: `facts.replica_place`, empty where a version before writes;
    `replaced_at`: when one that started there took it for dead; null again once it wrote (`services.replacing`).
    """

    id = models.CharField(max_length=32, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    nacks_dropped = models.PositiveBigIntegerField(default=0)
    fleet_batches = models.PositiveBigIntegerField(default=0, db_default=0)
    # `facts.Serving` by environment; NULL: a version that does not report it.
    serves = models.JSONField(null=True)
    place = models.CharField(max_length=HASH_CHARS, blank=True, default="", db_default="")
    replaced_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        """The host and process id of the ADS process."""
        return f"{self.host}/{self.pid}"


class Client(models.Model):
    """A client: one (environment, identity, node id).

    The id is a function of them, so that no index over long texts is needed. `accountable`: on whose share its row
    counts; empty where an ADS process of the version before wrote it last.
    """

    id = models.CharField(max_length=CLIENT_ID_CHARS, primary_key=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    identity = models.CharField(max_length=2048, blank=True)
    node_id = models.CharField(max_length=1024)
    node_cluster = models.CharField(max_length=255, blank=True)
    family = models.CharField(max_length=16, choices=[(value, value) for value in _values(ClientFamily)])
    user_agent = models.CharField(max_length=200, blank=True)
    user_agent_version = models.CharField(max_length=100, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField(db_index=True)
    accountable = models.CharField(max_length=ACCOUNTABLE_CHARS, blank=True, db_default="")

    class Meta:
        """Clients are looked up by node id within an environment."""

        indexes = (models.Index(fields=("environment", "node_id"), name="client_by_node"),)
        constraints = (
            models.CheckConstraint(condition=models.Q(family__in=_values(ClientFamily)), name="client_family_known"),
        )

    def __str__(self) -> str:
        """The client's node id."""
        return self.node_id


class Stream(models.Model):
    """A stream of a client to one ADS process."""

    id = models.CharField(max_length=STREAM_ID_CHARS, primary_key=True)
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="streams")
    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="streams", db_index=False)
    variant = models.CharField(max_length=8, choices=[(value, value) for value in VARIANTS])
    peer = models.CharField(max_length=255, blank=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    cause = models.CharField(max_length=300, blank=True)

    class Meta:
        """Open streams are looked up by replica, closed ones by when they ended."""

        indexes = (
            models.Index(fields=("replica",), condition=models.Q(closed_at=None), name="stream_open_by_replica"),
            models.Index(fields=("closed_at",), condition=models.Q(closed_at__isnull=False), name="stream_closed_at"),
        )
        constraints = (models.CheckConstraint(condition=models.Q(variant__in=VARIANTS), name="stream_variant_known"),)

    def __str__(self) -> str:
        """The stream's id."""
        return self.id


class NameSet(models.Model):
    """The names of a subscription, shared by all streams that ask for the same ones."""

    id = models.CharField(max_length=HASH_CHARS, primary_key=True)
    count = models.PositiveIntegerField()
    names = models.BinaryField()

    def __str__(self) -> str:
        """The number of names."""
        return f"{self.count} names"


class Subscription(models.Model):
    """The subscription of a stream to one type: the names, the last response, and the client's answer to it."""

    pk = models.CompositePrimaryKey("stream_id", "type")
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="subscriptions", db_index=False)
    type = models.CharField(max_length=16)
    name_set = models.ForeignKey(NameSet, on_delete=models.RESTRICT, related_name="+", db_index=False)
    wildcard = models.BooleanField()
    state = models.CharField(max_length=16, choices=[(value, value) for value in _values(SubscriptionState)])
    sent = models.CharField(max_length=VERSION_CHARS, blank=True)
    sent_at = models.DateTimeField(null=True)
    acked = models.CharField(max_length=VERSION_CHARS, blank=True)
    acked_at = models.DateTimeField(null=True)

    class Meta:
        """No index but the key: these rows are written far more often than read."""

        constraints = (
            models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="subscription_type_known"),
            models.CheckConstraint(
                condition=models.Q(state__in=_values(SubscriptionState)), name="subscription_state_known"
            ),
        )

    def __str__(self) -> str:
        """The subscription's type and state."""
        return f"{self.type} {self.state}"


class ContentList(models.Model):
    """The (name, version) of every resource of a response, in order: shared by all NACKs of the same response."""

    id = models.CharField(max_length=HASH_CHARS, primary_key=True)
    count = models.PositiveIntegerField()
    contents = models.BinaryField()

    def __str__(self) -> str:
        """The number of contents."""
        return f"{self.count} contents"


class Nack(models.Model):
    """A NACK as the client sent it, with what it refused. `digested_at` is null until incidents have taken it in.

    `accountable`: on whose share it counts; empty where an ADS process of the version before wrote it. `kept`: what the
    client had acknowledged, on the same stream, of the suspects; null where one before that wrote it. `healing`: it was
    sent that again, because it may have dropped it (protocol.md F17a).
    """

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="nacks", db_index=False)
    stream = models.CharField(max_length=STREAM_ID_CHARS)  # no foreign key: closed streams are forgotten sooner
    type = models.CharField(max_length=16)
    version = models.CharField(max_length=VERSION_CHARS, blank=True)
    code = models.IntegerField()
    text = models.TextField(blank=True)
    resources = models.ForeignKey(ContentList, on_delete=models.RESTRICT, related_name="+", db_index=False)
    suspects = models.ForeignKey(ContentList, on_delete=models.RESTRICT, related_name="+", db_index=False)
    kept = models.ForeignKey(ContentList, on_delete=models.RESTRICT, related_name="+", db_index=False, null=True)
    healing = models.BooleanField(db_default=False)
    evidence = models.CharField(max_length=16, db_default=Evidence.TEXT.value)
    repeats = models.PositiveIntegerField(default=1)
    accountable = models.CharField(max_length=ACCOUNTABLE_CHARS, blank=True, db_default="")
    at = models.DateTimeField(db_index=True)
    digested_at = models.DateTimeField(null=True)

    class Meta:
        """NACKs are looked up by client and type; those that are not digested yet by a small index of their own."""

        indexes = (
            models.Index(fields=("client", "type", "id"), name="nack_by_client"),
            models.Index(fields=("id",), condition=models.Q(digested_at=None), name="nack_pending"),
        )
        constraints = (
            models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="nack_type_known"),
            models.CheckConstraint(condition=models.Q(evidence__in=_values(Evidence)), name="nack_evidence_known"),
        )

    def __str__(self) -> str:
        """The type of the NACK and the id of the client."""
        return f"{self.type} nack of {self.client_id}"


class ContentProbe(models.Model):
    """A content that is withheld from others and that a client acknowledged when it was let try it. A row waits here
    until the catalogue was told.
    """

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    version = models.CharField(max_length=VERSION_CHARS)

    class Meta:
        """The type is a known one."""

        constraints = (models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="probe_type_known"),)

    def __str__(self) -> str:
        """The type, name and version of the content that was tried."""
        return f"{self.type} {self.name} {self.version}"


class ContentProof(models.Model):
    """A content that a client acknowledged in a response. A row waits here until the catalogue was told."""

    pk = models.CompositePrimaryKey("environment", "type", "name", "version")
    environment = models.CharField(max_length=63)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    version = models.CharField(max_length=VERSION_CHARS)
    at = models.DateTimeField()

    class Meta:
        """The type is a known one."""

        constraints = (models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="proof_type_known"),)

    def __str__(self) -> str:
        """The type, name and version of the content that was proven."""
        return f"{self.type} {self.name} {self.version}"


class Report(models.Model):
    """The result of comparing one report of a data plane with what Parley believes; `by`: who brought the report."""

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="reports", db_index=False)
    at = models.DateTimeField(db_index=True)
    source = models.CharField(max_length=16, choices=[(value, value) for value in _values(SaidSource)])
    by = models.CharField(max_length=255)
    compared = models.PositiveIntegerField()
    differing = models.PositiveIntegerField()
    by_presence = models.PositiveIntegerField()
    unsure = models.PositiveIntegerField()

    class Meta:
        """Reports are looked up by client, newest first."""

        indexes = (models.Index(fields=("client", "-id"), name="report_by_client"),)
        constraints = (
            models.CheckConstraint(condition=models.Q(source__in=_values(SaidSource)), name="report_source_known"),
        )

    def __str__(self) -> str:
        """How many names differ, and the id of the client."""
        return f"{self.differing} of {self.compared} differ at {self.client_id}"


class SaidDifference(models.Model):
    """A name on which a data plane's newest report differs from what Parley believes.

    `since`: when the name was first seen to differ; it stays as long as it does. The versions are of contents, the
    revisions those of the catalogue; empty and 0 where they are not known, as where the data plane has nothing.
    """

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="differences", db_index=False)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    kind = models.CharField(max_length=16, choices=[(value, value) for value in _values(DifferenceKind)])
    state = models.CharField(max_length=16, blank=True)
    held = models.BooleanField()
    said_version = models.CharField(max_length=VERSION_CHARS, blank=True)
    said_revision = models.PositiveIntegerField()
    believed_version = models.CharField(max_length=VERSION_CHARS, blank=True)
    believed_revision = models.PositiveIntegerField()
    error = models.TextField(blank=True)
    since = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        """At most one row for each name of a client, of known types, kinds and states."""

        constraints = (
            models.UniqueConstraint(fields=("client", "type", "name"), name="difference_once"),
            models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="difference_type_known"),
            models.CheckConstraint(condition=models.Q(kind__in=_values(DifferenceKind)), name="difference_kind_known"),
            models.CheckConstraint(
                condition=models.Q(state__in=["", *_values(SaidState)]), name="difference_state_known"
            ),
        )

    def __str__(self) -> str:
        """The name that differs, how, and the id of the client."""
        return f"{self.type} {self.name} {self.kind} at {self.client_id}"

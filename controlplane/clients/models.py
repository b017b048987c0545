"""The tables of facts (decisions part 5). Private to this app's services and selectors.

Rows are keyed by what an ADS process knows without asking: the id of its stream, the id of a client
(`identity.client_id`), the hash of a set of names. What a client was told is not stored but derived (decision 1);
subscriptions are interned name sets (decision 2).
"""

from enum import Enum

from django.db import models

from controlplane.clients.comparing import DifferenceKind
from controlplane.clients.facts import HASH_CHARS, POLLS, SubscriptionState
from controlplane.clients.identity import CLIENT_ID_CHARS
from xdscore.client_kinds import ClientFamily
from xdscore.evidence import Evidence
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.said import SaidSource, SaidState
from xdscore.shares import ACCOUNTABLE_CHARS

STREAM_ID_CHARS = 32
VERSION_CHARS = 64
TYPE_WORDS = tuple(kind.word for kind in RESOURCE_TYPES)
VARIANTS = ("sotw", "delta", POLLS)


def _values(kind: type[Enum]) -> list[str]:
    return [member.value for member in kind]


class Replica(models.Model):
    """One ADS process. It counts as dead after `services.SILENT_S` without a report, and from `stopped_at` on, which it
    reports itself.

    `fleet_batches`: how many of its reports changed clients, streams or subscriptions; 0 from the version before this
        one.
    `place`: the value of `facts.replica_place`; empty from the version before this one.
    `replaced_at`: when a process that started in its place took it for dead; null again once it has reported after
        that.
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
    """A client: one combination of environment, identity and node id. Its id is a hash of them, so that no index over
    long texts is needed.

    `accountable`: the key of whoever is accountable for it when rows are limited per party (`xdscore.shares`); empty
        where an ADS process of the version before this one wrote the row last.
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


class ClientLabels(models.Model):
    """The labels that people gave a client. They stay when the client is forgotten, and are its again if it returns.

    `labels`: as `xdscore.labels.packed` has them. `gone_at`: since when the client is forgotten; null while it is not.
    """

    # Without a constraint: the client may be forgotten, and its id is a hash of who it is.
    client = models.OneToOneField(
        Client, on_delete=models.DO_NOTHING, db_constraint=False, primary_key=True, related_name="given"
    )
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    labels = models.TextField()
    gone_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        """The id of the client."""
        return str(self.client_id)


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
        """Open streams are looked up by their ADS process, closed ones by when they ended."""

        indexes = (
            models.Index(fields=("replica",), condition=models.Q(closed_at=None), name="stream_open_by_replica"),
            models.Index(fields=("closed_at",), condition=models.Q(closed_at__isnull=False), name="stream_closed_at"),
        )
        constraints = (models.CheckConstraint(condition=models.Q(variant__in=VARIANTS), name="stream_variant_known"),)

    def __str__(self) -> str:
        """The stream's id."""
        return self.id


class NameSet(models.Model):
    """The names of a subscription. One row is shared by all streams that ask for the same names."""

    id = models.CharField(max_length=HASH_CHARS, primary_key=True)
    count = models.PositiveIntegerField()
    names = models.BinaryField()

    def __str__(self) -> str:
        """The number of names."""
        return f"{self.count} names"


class HoldingSet(models.Model):
    """What a client has of each resource of a type: all of it (a keyframe), or how that differs from `keyframe`. One
    row is shared by all streams that have the same. `entries`: `held_sets.pack_held`; `count`: of names in all.
    """

    id = models.CharField(max_length=HASH_CHARS, primary_key=True)
    keyframe = models.ForeignKey("self", on_delete=models.RESTRICT, related_name="+", null=True)
    count = models.PositiveIntegerField()
    entries = models.BinaryField()

    def __str__(self) -> str:
        """The number of names."""
        return f"{self.count} names"


class Subscription(models.Model):
    """The subscription of a stream to one type: the names, the last response, and the client's answer to that.

    `holding_set`: what the client has; null where an ADS process of the version before this one wrote the row.
    `held_at`: since when.
    """

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
    holding_set = models.ForeignKey(HoldingSet, on_delete=models.RESTRICT, related_name="+", db_index=False, null=True)
    held_at = models.DateTimeField(null=True)

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


class HoldingMove(models.Model):
    """What some streams have of a type changed, for all of them from the one set to the other. `from_set`: null where a
    stream had not said what it has. `streams`: `held_sets.stream_mark` of each; `count`: how many they are.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+", db_index=False)
    type = models.CharField(max_length=16)
    from_set = models.ForeignKey(HoldingSet, on_delete=models.RESTRICT, related_name="+", null=True)
    to_set = models.ForeignKey(HoldingSet, on_delete=models.RESTRICT, related_name="+", db_index=False)
    at = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField()
    streams = models.BinaryField()

    class Meta:
        """Moves are looked up by where they led, and by when they were."""

        indexes = (
            models.Index(fields=("to_set", "at"), name="move_by_set"),
            models.Index(fields=("environment", "type", "at"), name="move_by_type"),
        )
        constraints = (models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="move_type_known"),)

    def __str__(self) -> str:
        """The type and the number of streams."""
        return f"{self.type} of {self.count} streams"


class ContentList(models.Model):
    """The (name, version) of every resource of a response, in order. One row is shared by all NACKs of equal
    responses.
    """

    id = models.CharField(max_length=HASH_CHARS, primary_key=True)
    count = models.PositiveIntegerField()
    contents = models.BinaryField()

    def __str__(self) -> str:
        """The number of contents."""
        return f"{self.count} contents"


class Nack(models.Model):
    """A NACK as the client sent it, with what it refused. `digested_at`: when it was counted in an incident; null
    before.

    `accountable`: the key of whoever is accountable for it when rows are limited per party (`xdscore.shares`); empty
        where an ADS process of the version before this one wrote the row.
    `kept`: what the client had acknowledged of the suspects on this stream; null where an earlier version wrote the
        row.
    `healing`: whether the client was sent that again, because it may have dropped it (protocol.md F17a).
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
        """NACKs are looked up by client and type; those that no incident has counted yet by a small index of their
        own.
        """

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
    """A content that is withheld from others and that a client acknowledged when it was sent it as a trial (probe). A
    row is deleted once the catalogue has taken it in.
    """

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    version = models.CharField(max_length=VERSION_CHARS)

    class Meta:
        """The database refuses a row whose type is not a known one."""

        constraints = (models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="probe_type_known"),)

    def __str__(self) -> str:
        """The type, name and version of the content that was tried."""
        return f"{self.type} {self.name} {self.version}"


class ContentProof(models.Model):
    """A content that a client acknowledged in a response. A row is deleted once the catalogue has taken it in."""

    pk = models.CompositePrimaryKey("environment", "type", "name", "version")
    environment = models.CharField(max_length=63)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    version = models.CharField(max_length=VERSION_CHARS)
    at = models.DateTimeField()

    class Meta:
        """The database refuses a row whose type is not a known one."""

        constraints = (models.CheckConstraint(condition=models.Q(type__in=TYPE_WORDS), name="proof_type_known"),)

    def __str__(self) -> str:
        """The type, name and version of the acknowledged content."""
        return f"{self.type} {self.name} {self.version}"


class Report(models.Model):
    """The result of comparing one report of a data plane with what Parley believes. `by`: the name of who handed the
    report in.
    """

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

    `since`: when the name was first seen to differ, without a report in between on which it agreed.
    `said_version`, `said_revision`: the content by the report, and the revision of the catalogue that has it; empty and
        0 where that is not known.
    `believed_version`, `believed_revision`: the same of the content that Parley believes in.
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
        """At most one row for each name of a client. The database refuses types, kinds and states that are not known
        ones.
        """

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

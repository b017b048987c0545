"""The tables of access (decisions part 5). Private to this app's services and selectors."""

from enum import Enum

from django.db import models
from django.utils import timezone

from controlplane.access.choices import EditAction, EditSubject
from controlplane.database.append_only import AppendOnly
from xdscore.access import Effect
from xdscore.client_groups import Trust

# The column's width; what an operator may write is a limit (`pattern_chars`).
PATTERN_CHARS = 256
KEY_CHARS = 63
MESSAGE_CHARS = 200


def _values(kind: type[Enum]) -> list[str]:
    return [str(member.value) for member in kind]


def _choices(kind: type[Enum]) -> list[tuple[str, str]]:
    return [(value, value) for value in _values(kind)]


class ClientGroup(models.Model):
    """A client group: clients that access rules mean together. A client belongs to it when at least one of its matchers
    fits.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="client_groups")
    key = models.CharField(max_length=KEY_CHARS)
    matchers = models.JSONField(default=list)
    trust = models.CharField(max_length=16, choices=_choices(Trust))

    class Meta:
        """Constraint: an environment has at most one group with a key."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "key"), name="client_group_key_once"),
            models.CheckConstraint(condition=models.Q(trust__in=_values(Trust)), name="client_group_trust_known"),
        )

    def __str__(self) -> str:
        """The group's key."""
        return self.key


class AccessRule(models.Model):
    """An access rule. Of the rules that are for a client, are about the type and match the name, the first by position
    decides.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="access_rules")
    position = models.PositiveIntegerField()
    types = models.JSONField(default=list)
    pattern = models.CharField(max_length=PATTERN_CHARS)
    effect = models.CharField(max_length=8, choices=_choices(Effect))
    message = models.CharField(max_length=MESSAGE_CHARS, blank=True, default="")
    enabled = models.BooleanField(default=True)
    client_groups: "models.ManyToManyField[ClientGroup, AccessRuleGroup]" = models.ManyToManyField(
        ClientGroup, through="AccessRuleGroup", related_name="rules"
    )

    class Meta:
        """Constraint: two rules of an environment have different positions. Positions may leave gaps."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "position"), name="access_rule_position_once"),
            models.CheckConstraint(condition=models.Q(effect__in=_values(Effect)), name="access_rule_effect_known"),
        )

    def __str__(self) -> str:
        """The rule's effect and pattern."""
        return f"{self.effect} {self.pattern}"


class AccessRuleGroup(models.Model):
    """A client group that an access rule is for. The group cannot be deleted before the rule, which without groups
    would be for everybody.
    """

    rule = models.ForeignKey(AccessRule, on_delete=models.CASCADE, related_name="group_links")
    group = models.ForeignKey(ClientGroup, on_delete=models.RESTRICT, related_name="rule_links")

    class Meta:
        """Constraint: a rule has a group at most once."""

        constraints = (models.UniqueConstraint(fields=("rule", "group"), name="access_rule_group_once"),)

    def __str__(self) -> str:
        """The row ids of the rule and of the group."""
        return f"rule {self.rule_id} of group {self.group_id}"


class AccessCase(models.Model):
    """A saved case: what an operator expects the access rules to decide, tried at every change of them. `blocking`: a
    change that breaks the case is refused.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="access_cases")
    client = models.JSONField(default=dict)
    type = models.CharField(max_length=16)
    name = models.CharField(max_length=1024)
    expect = models.CharField(max_length=8, choices=_choices(Effect))
    blocking = models.BooleanField(default=False)

    class Meta:
        """Constraint: the expected effect is a value of `Effect`."""

        constraints = (
            models.CheckConstraint(condition=models.Q(expect__in=_values(Effect)), name="access_case_effect_known"),
        )

    def __str__(self) -> str:
        """The expected effect, and the type and name for which it is expected."""
        return f"{self.expect} {self.type} {self.name}"


class AccessEdit(AppendOnly):
    """What a change did to one client group or access rule: `before` and `after` it, null where the group or rule did
    not exist. All edits together are the history of access.
    """

    change = models.ForeignKey("catalog.Change", on_delete=models.CASCADE, related_name="access_edits")
    subject = models.CharField(max_length=8, choices=_choices(EditSubject))
    subject_id = models.BigIntegerField()
    action = models.CharField(max_length=8, choices=_choices(EditAction))
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The index finds the edits of one rule or group."""

        indexes = (models.Index(fields=("subject", "subject_id", "id"), name="access_edit_of_subject"),)

    def __str__(self) -> str:
        """The rule or group that was edited, and whether it was created, updated or deleted."""
        return f"{self.subject} {self.subject_id} {self.action}"

"""Client groups, access rules, and cases to try them with."""

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.access.checks import key_problem
from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import KEY_CHARS, MESSAGE_CHARS
from controlplane.api.fields import Flag, StrictSerializer, Text, Whole
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.shapes.common import FindingOut
from controlplane.api.shapes.environments import SelectorIn, SelectorOut
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.codes import shown
from xdscore.names import name_problem

_EFFECTS: Final = [effect.value for effect in Effect]
_TRUSTS: Final = [trust.value for trust in Trust]
# As in environments: more is a list of clients, not a rule.
_MAX_MATCHERS: Final = 100
_MAX_GROUPS: Final = 100
MAX_POSITION: Final = 1_000_000_000
_MAX_FACT_CHARS: Final = 2_048  # a SPIFFE ID
_MAX_METADATA: Final = 16


class TypeField(Text):
    """A field for a resource type: its word, or its type URL."""

    def to_internal_value(self, data: object) -> str:
        """The type's word. Raises ValidationError for an unknown type."""
        text = super().to_internal_value(data)
        kind = kind_named(text)
        if kind is None:
            raise ValidationError(f"There is no resource type '{shown(text)}'. Types are {type_words()}.")
        return kind.word


class NameField(Text):
    """A field for a resource name."""

    def to_internal_value(self, data: object) -> str:
        """The name. Raises ValidationError when no resource can have it."""
        name = super().to_internal_value(data)
        problem = name_problem(name)
        if problem:
            raise ValidationError(f"The name {problem}.")
        return name


class ClientGroupIn(StrictSerializer):
    """A client group: a client belongs to it when at least one of its matchers fits."""

    key = Text(max_length=KEY_CHARS)
    matchers = serializers.ListField(child=SelectorIn(), max_length=_MAX_MATCHERS)
    trust = serializers.ChoiceField(
        choices=_TRUSTS, help_text="`verified`: matchers look at the identity only, which the transport proved."
    )

    def validate_key(self, value: str) -> str:
        """The group's key, which stands in URLs and logs. Raises ValidationError for a text that cannot be a key."""
        if problem := key_problem(value):
            raise ValidationError(problem)
        return value


class ClientGroupOut(serializers.Serializer[Any]):
    """A client group as it is stored."""

    id = serializers.IntegerField()
    key = serializers.CharField()
    matchers = SelectorOut(many=True)
    trust = serializers.ChoiceField(choices=_TRUSTS)


class ClientGroupWrittenOut(ClientGroupOut):
    """A client group after a write."""

    change = serializers.UUIDField(allow_null=True, help_text="The change this made; null when nothing had to change.")
    findings = FindingOut(many=True, help_text="What the rules as a whole leave to be desired.")


class RuleIn(StrictSerializer):
    """An access rule. Of the rules that are for a client, are about the type and match the name, the first by position
    decides.
    """

    position = Whole(required=False, min_value=1, max_value=MAX_POSITION, help_text="Absent: behind all others.")
    client_groups = serializers.ListField(
        child=Text(), required=False, default=list, max_length=_MAX_GROUPS, help_text="Keys; empty: any client."
    )
    types = serializers.ListField(
        child=TypeField(),
        required=False,
        default=list,
        max_length=32,
        help_text="Words; empty: any type. Secrets are allowed only by a rule that names the type.",
    )
    pattern = Text(help_text="A name, in which a star stands for any run of characters; at most two stars.")
    effect = serializers.ChoiceField(
        choices=_EFFECTS,
        help_text="`deny` answers PERMISSION_DENIED, `hide` NOT_FOUND; whether or not the name exists.",
    )
    message = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=MESSAGE_CHARS,
        help_text="With `deny`: said to clients, so it must not be confidential.",
    )
    enabled = Flag(required=False, default=True)


class RuleOut(serializers.Serializer[Any]):
    """An access rule. Its id is the number by which explanations name it."""

    id = serializers.IntegerField()
    position = serializers.IntegerField()
    client_groups = serializers.ListField(child=serializers.CharField())
    types = serializers.ListField(child=serializers.CharField())
    pattern = serializers.CharField()
    effect = serializers.ChoiceField(choices=_EFFECTS)
    message = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()


class RuleWrittenOut(RuleOut):
    """An access rule after a write."""

    change = serializers.UUIDField(allow_null=True, help_text="The change this made; null when nothing had to change.")
    findings = FindingOut(many=True, help_text="What the rules as a whole leave to be desired.")


class CaseIn(StrictSerializer):
    """A case: a client, a name, and the effect that the rules are expected to have."""

    identity = Text(required=False, max_length=_MAX_FACT_CHARS, help_text="A verified SPIFFE ID or token subject.")
    node_id = Text(required=False, max_length=_MAX_FACT_CHARS)
    node_cluster = Text(required=False, max_length=_MAX_FACT_CHARS)
    metadata = serializers.DictField(child=Text(allow_blank=True, max_length=_MAX_FACT_CHARS), required=False)
    type = TypeField()
    name = NameField(help_text="Need not exist: access is decided on the name alone.")
    expect = serializers.ChoiceField(choices=_EFFECTS)

    def validate_metadata(self, value: dict[str, str]) -> dict[str, str]:
        """The metadata. Raises ValidationError for more keys than clients may send."""
        if len(value) > _MAX_METADATA:
            raise ValidationError(f"This has {len(value)} keys; at most {_MAX_METADATA} are allowed.")
        return value


class SavedCaseIn(CaseIn):
    """A case to save, to be tried at every change of the rules."""

    blocking = Flag(required=False, default=False, help_text="A change of the rules that breaks it is refused.")


class TestIn(StrictSerializer):
    """Cases to try against the rules as they are now; nothing is saved."""

    cases = CaseIn(many=True)


class CaseResultOut(serializers.Serializer[Any]):
    """The effect that the rules have for the client and name of a case, and the rule that decided."""

    ok = serializers.BooleanField(help_text="Whether it is as expected.")
    effect = serializers.ChoiceField(choices=_EFFECTS)
    rule = serializers.IntegerField(allow_null=True, help_text="Which rule decided; null: the environment's default.")
    message = serializers.CharField(allow_blank=True)


class TestOut(serializers.Serializer[Any]):
    """The results of trying cases, in the order of the cases."""

    results = CaseResultOut(many=True)


class SavedCaseOut(serializers.Serializer[Any]):
    """A saved case, with its result under the rules as they are now."""

    id = serializers.IntegerField()
    identity = serializers.CharField(required=False)
    node_id = serializers.CharField(required=False)
    node_cluster = serializers.CharField(required=False)
    metadata = serializers.DictField(child=serializers.CharField(), required=False)
    type = serializers.CharField()
    name = serializers.CharField()
    expect = serializers.ChoiceField(choices=_EFFECTS)
    blocking = serializers.BooleanField()
    result = CaseResultOut()


class ReviewOut(serializers.Serializer[Any]):
    """Findings about access rules that can never decide anything."""

    findings = FindingOut(many=True)


class AccessEditOut(serializers.Serializer[Any]):
    """An entry of the history of access: what one change did to one client group or access rule."""

    change = serializers.UUIDField()
    author = serializers.CharField()
    author_id = serializers.CharField(allow_null=True, help_text="Who it was, for good. Null: older than ids.")
    at = serializers.DateTimeField()
    subject = serializers.ChoiceField(choices=[each.value for each in EditSubject])
    id = serializers.IntegerField()
    action = serializers.ChoiceField(choices=[each.value for each in EditAction])
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)

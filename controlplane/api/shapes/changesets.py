"""Change sets: what somebody proposes to write, and what others say of it (interfaces.md section 8)."""

from enum import Enum
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import KEY_CHARS
from controlplane.access.values import POSITION_FIRST
from controlplane.api.fields import StrictSerializer, Text, Time, Whole
from controlplane.api.shapes.access import MAX_POSITION, ClientGroupIn, RuleIn
from controlplane.api.shapes.changes import ApplyImpactOut, DeletionIn, DifferentResourceOut, ManifestField
from controlplane.api.shapes.common import FindingOut, LossOut, ResourceRefOut
from controlplane.changesets.machine import Act
from controlplane.changesets.values import (
    MAX_MESSAGE_CHARS,
    MAX_REASON_CHARS,
    MAX_TITLE_CHARS,
    MAX_WISHES,
    SetState,
    Take,
    Verdict,
)

MAX_ID: Final = 2**53  # as far as a number of JSON is exact


def _words(kind: type[Enum]) -> list[str]:
    return [str(each.value) for each in kind]


class Said(Text):
    """A field for a text that says something: not only spaces, which at its ends are left out."""

    def to_internal_value(self, data: object) -> str:
        """The text. Raises ValidationError where there is none."""
        text = super().to_internal_value(data).strip()
        if not text:
            raise ValidationError("This may not be blank.", code="blank")
        return text


class ProposedRuleIn(RuleIn):
    """An access rule that a change set writes."""

    id = Whole(required=False, min_value=1, max_value=MAX_ID, help_text="Which rule it becomes; absent: a new one.")
    position = Whole(
        required=False,
        allow_null=True,
        min_value=POSITION_FIRST,
        max_value=MAX_POSITION,
        help_text="0: before all others. Absent: where the rule is, or behind all others.",
    )


class ProposedGroupIn(ClientGroupIn):
    """A client group that a change set writes."""

    id = Whole(
        required=False,
        min_value=1,
        max_value=MAX_ID,
        help_text="Which group it becomes, so that its key may change; absent: the one with this key, or a new one.",
    )


class AccessProposedIn(StrictSerializer):
    """What a change set does with access rules and client groups: these members together are all of it."""

    rules = serializers.ListField(
        child=ProposedRuleIn(), required=False, max_length=MAX_WISHES, help_text="Access rules to write."
    )
    groups = serializers.ListField(
        child=ProposedGroupIn(), required=False, max_length=MAX_WISHES, help_text="Client groups to write."
    )
    delete_rules = serializers.ListField(
        child=Whole(min_value=1, max_value=MAX_ID),
        required=False,
        max_length=MAX_WISHES,
        help_text="Ids of access rules to delete; what is not there is no error.",
    )
    delete_groups = serializers.ListField(
        child=Text(max_length=KEY_CHARS),
        required=False,
        max_length=MAX_WISHES,
        help_text="Keys of client groups to delete; what is not there is no error.",
    )


class MergeIn(StrictSerializer):
    """What to do about a name that was written since the change set was made."""

    type = Text(help_text="A type's word or type URL; `rule` or `group`.")
    name = Text()
    take = serializers.ChoiceField(
        choices=_words(Take), help_text="`ours`: the set's content over what was written; `theirs`: it leaves the set."
    )


class ChangeSetEditIn(AccessProposedIn):
    """What becomes of a change set; what is not named stays. An edit makes it a draft again: every approval is void."""

    title = Said(required=False, max_length=MAX_TITLE_CHARS)
    message = Text(required=False, allow_blank=True, max_length=MAX_MESSAGE_CHARS, help_text="That of the change.")
    resources = ManifestField(required=False, help_text="Manifests: with `delete`, all it does with resources.")
    delete = DeletionIn(many=True, required=False, help_text="What to delete; what is not there is no error.")
    not_before = Time(required=False, allow_null=True, help_text="From when on it may be published by itself.")
    expires = Time(required=False, allow_null=True, help_text="Until when it may be published at all.")
    merge = MergeIn(many=True, required=False, help_text="What to do about names in `moved`.")
    version = Whole(required=False, min_value=1, help_text="Refuse if it is not at this version any more.")


class ChangeSetIn(AccessProposedIn):
    """What somebody proposes to write as one change."""

    title = Said(max_length=MAX_TITLE_CHARS)
    message = Text(
        required=False, allow_blank=True, default="", max_length=MAX_MESSAGE_CHARS, help_text="That of the change."
    )
    resources = ManifestField(required=False, help_text="Manifests.")
    delete = DeletionIn(
        many=True, required=False, default=list, help_text="What to delete; what is not there is no error."
    )
    not_before = Time(
        required=False, allow_null=True, default=None, help_text="From when on it may be published by itself."
    )
    expires = Time(required=False, allow_null=True, default=None, help_text="Until when it may be published at all.")


class ActIn(StrictSerializer):
    """Why something is done with a change set, for the record."""

    reason = Text(required=False, allow_blank=True, default="", max_length=MAX_REASON_CHARS)
    version = Whole(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        help_text="The version that was looked at: refuse if it was edited since. Absent: the present one.",
    )


class ScheduleIn(ActIn):
    """When a change set is to be published by itself."""

    not_before = Time(
        required=False, allow_null=True, default=None, help_text="From when on. Absent: the time of the set."
    )


class CommentIn(StrictSerializer):
    """Something to say about a change set, or about a line of one of its resources."""

    reason = Said(max_length=MAX_REASON_CHARS, help_text="The text.")
    type = Text(
        required=False, default="", help_text="Of what it is about: a type's word or type URL; `rule` or `group`."
    )
    name = Text(required=False, default="")
    line = Whole(
        required=False, allow_null=True, default=None, min_value=1, help_text="The line of its manifest in YAML."
    )


class SetReviewOut(serializers.Serializer[Any]):
    """What somebody said of a change set."""

    author = serializers.CharField()
    verdict = serializers.ChoiceField(choices=_words(Verdict))
    text = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField(help_text="The version that it is about.")
    counts = serializers.BooleanField(help_text="It is an approval of the present version.")
    type = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(allow_null=True)
    at = serializers.DateTimeField()


class MovedOut(ResourceRefOut):
    """A resource, rule or group that was written since the change set was made. Of a rule or group, its edits are
    counted as its revisions.
    """

    author = serializers.CharField()
    change = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        """The fields, with `from` among them, which is a word of Python's."""
        revisions = {
            "from": serializers.IntegerField(allow_null=True, help_text="The revision it was made from; null: none."),
            "to": serializers.IntegerField(allow_null=True, help_text="The revision now; null: it is deleted."),
        }
        return {**super().get_fields(), **revisions}


class ProposedEditOut(DifferentResourceOut):
    """What a change set does to one resource."""

    base = serializers.IntegerField(allow_null=True, help_text="The revision it was made from; null: there was none.")


class ProposedAccessOut(serializers.Serializer[Any]):
    """What a change set does with one access rule or client group."""

    type = serializers.ChoiceField(choices=_words(EditSubject))
    name = serializers.CharField(help_text="The rule's number, the group's key; `new-1` for the first rule to be made.")
    id = serializers.IntegerField(allow_null=True, help_text="Null: it is to be made.")
    action = serializers.ChoiceField(choices=_words(EditAction))
    before = serializers.DictField(allow_null=True, help_text="As it was when the set was made from it.")
    after = serializers.DictField(allow_null=True, help_text="As the set has it; null: it is deleted.")
    text = serializers.CharField(required=False, help_text="With `text`: the difference as a patch.")


class ChangeSetOut(serializers.Serializer[Any]):
    """How a change set stands."""

    id = serializers.UUIDField()
    environment = serializers.CharField()
    title = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(
        choices=_words(SetState),
        help_text="`stale`: something of it was written since, see `moved`; `expired`: its time is over.",
    )
    version = serializers.IntegerField(help_text="The number of its edits and submissions.")
    authors = serializers.ListField(child=serializers.CharField(), help_text="Who made or edited it, the maker first.")
    resource_count = serializers.IntegerField(help_text="How many resources it writes or deletes.")
    access_count = serializers.IntegerField(help_text="How many access rules and client groups.")
    moved_count = serializers.IntegerField(help_text="How many of these were written since it was made.")
    base_generation = serializers.IntegerField(help_text="The environment's generation when it was edited last.")
    approvals = serializers.IntegerField(help_text="How many people approved this version.")
    approvals_needed = serializers.IntegerField(help_text="How many the environment asks for.")
    review_required = serializers.BooleanField(help_text="It cannot be published without them.")
    not_before = serializers.DateTimeField(allow_null=True)
    expires = serializers.DateTimeField(allow_null=True)
    waits_for = serializers.CharField(
        allow_null=True, help_text="What it waits for, or why it was not published at its time."
    )
    scheduled_by = serializers.CharField(allow_null=True, help_text="Whose rights count when its time comes.")
    published_by = serializers.CharField(allow_null=True)
    changes = serializers.ListField(child=serializers.UUIDField(), help_text="The changes as which it was published.")
    created_at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ChangeSetDetailOut(ChangeSetOut):
    """A change set with what it does, what it would change now, and what was said of it."""

    moved = MovedOut(many=True)
    diff = ProposedEditOut(
        many=True, help_text="Each resource beside the revision from which it was made; the first 1,000."
    )
    access = ProposedAccessOut(many=True, help_text="What it does with access rules and client groups.")
    findings = FindingOut(many=True, help_text="What speaks against publishing it now; none once it was published.")
    impact = ApplyImpactOut(
        allow_null=True, help_text="Whom publishing would reach now; null where it cannot be published, or was."
    )
    loss = LossOut(allow_null=True, help_text="What connected clients would lose; null as `impact`.")
    reviews = SetReviewOut(many=True)
    allowed = serializers.ListField(
        child=serializers.ChoiceField(choices=_words(Act)), help_text="What its state allows, whoever does it."
    )
    resources = ManifestField(required=False, help_text="With `manifests`: what it writes, without secrets.")
    delete = ResourceRefOut(many=True, required=False, help_text="With `manifests`.")
    rules = serializers.ListField(child=serializers.DictField(), required=False, help_text="With `manifests`.")
    groups = serializers.ListField(child=serializers.DictField(), required=False, help_text="With `manifests`.")
    delete_rules = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="With `manifests`."
    )
    delete_groups = serializers.ListField(child=serializers.CharField(), required=False, help_text="With `manifests`.")


class ChangeSetActedOut(ChangeSetOut):
    """A change set after something was done with it."""

    changed = serializers.BooleanField(help_text="False where it was done already.")

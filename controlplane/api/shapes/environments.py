"""Environments: what an operator decides about them."""

import re
from typing import Any, Final

from django.conf import settings
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import Flag, StrictSerializer, Text, Whole
from controlplane.api.shapes.freezes import (
    FREEZES_HELP,
    REVIEW_HELP,
    FreezeOut,
    FreezesField,
    FrozenOut,
    ReviewField,
    ReviewSettingsOut,
)
from controlplane.api.shapes.rollout_settings import ROLLOUT_HELP, RolloutSettingsField, RolloutSettingsOut
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import MAX_ACCESS_CLIENTS, MAX_OTHER_PERCENT
from controlplane.catalog.models import DEFAULT_EFFECTS, ENVIRONMENT_KEY_PATTERN
from controlplane.status.environments import Headline
from xdscore.schema.content_policy import Stance

# Selectors are compared one after the other for every new stream; more than this is a list of clients, not a rule.
_MAX_SELECTORS: Final = 100
_MAX_METADATA: Final = 16
_MAX_METADATA_KEY_CHARS: Final = 64
_DEFAULT_HELP: Final = (
    "What holds for names that no access rule speaks of. It never covers secrets: those are read only by a rule that "
    "allows them and names the type."
)
_NODE_IDS_HELP: Final = (
    "Patterns over the node id of a client whose identity is verified; `{name}` is what follows the identity's last "
    "slash. Empty: any node id."
)
_STANCES: Final = [each.value for each in Stance]
_CONTENT_HELP: Final = "Whether resources with dangerous content are refused, warned of, or allowed."
_HOLD_HELP: Final = (
    "Why resource changes are stopped; null: they are not. Refused (409) is what writes resources: PUT, DELETE, apply "
    "and restore. Rollbacks, quarantines, access rules and policies go through."
)
_DEEP_HELP: Final = "Whether an Envoy reads what is about to be served; what it refuses is held back."
_IF_MATCH_HELP: Final = (
    "Whether PUT, DELETE and restore of one resource need If-Match or `If-None-Match: *`; without either they are 428."
)
_ACCESS_CLIENTS_HELP: Final = "Of changes of access: so many clients or more."
_OTHER_PERCENT_HELP: Final = "Of other changes: so many per cent of the connected clients or more; 0: any client."
_MAX_HOLD_CHARS: Final = 500  # the column


class GlobField(Text):
    """A field for a pattern, in which `*` stands for any run of characters (reliability threat 13)."""

    def to_internal_value(self, data: object) -> str:
        """The pattern. Raises ValidationError for one that is longer, or has more stars, than this installation
        allows.
        """
        pattern = super().to_internal_value(data)
        limits = settings.PARLEY.limits
        if len(pattern) > limits.pattern_chars:
            raise ValidationError(f"This has {len(pattern)} characters; a pattern has at most {limits.pattern_chars}.")
        if pattern.count("*") > limits.pattern_wildcards:
            raise ValidationError(
                f"This has {pattern.count('*')} wildcards; a pattern has at most {limits.pattern_wildcards}."
            )
        return pattern


class MetadataField(serializers.DictField):
    """A field for an object with metadata keys and, for each, the pattern of its value."""

    child = GlobField()

    def to_internal_value(self, data: object) -> dict[str, str]:
        """The patterns, by metadata key. Raises ValidationError for keys or patterns that cannot be used."""
        if not isinstance(data, dict):
            raise ValidationError("This must be an object of patterns by metadata key.", code="wrong_type")
        if len(data) > _MAX_METADATA:
            raise ValidationError(f"This has {len(data)} keys; at most {_MAX_METADATA} are allowed.")
        if any(not key or len(key) > _MAX_METADATA_KEY_CHARS or not key.isprintable() for key in data):
            raise ValidationError(f"A key must be one printable line of 1 to {_MAX_METADATA_KEY_CHARS} characters.")
        values: dict[str, str] = super().to_internal_value(data)
        return values


class SelectorIn(StrictSerializer):
    """Patterns for what is known of a client; a client fits when all of them match."""

    identity = GlobField(required=False, help_text="Verified: a SPIFFE ID or a token's subject.")
    node_id = GlobField(required=False, help_text="Declared; counts while nothing is verified.")
    node_cluster = GlobField(required=False, help_text="Declared; counts while nothing is verified.")
    metadata = MetadataField(required=False, help_text="Declared; counts while nothing is verified.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The selector. Raises ValidationError for one without any pattern, which no client would fit."""
        if not any(attrs.values()):
            raise ValidationError(
                "A selector needs at least one of identity, node_id, node_cluster and metadata.", code="required"
            )
        return attrs


class SelectorOut(serializers.Serializer[Any]):
    """Patterns for what is known of a client; a client fits when all of them match. What has no pattern may be
    anything.
    """

    identity = serializers.CharField(required=False)
    node_id = serializers.CharField(required=False)
    node_cluster = serializers.CharField(required=False)
    metadata = serializers.DictField(child=serializers.CharField(), required=False)


def _stance(help_text: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=_STANCES, required=False, help_text=help_text)


class ContentIn(StrictSerializer):
    """Whether resources with each kind of dangerous content are allowed; settings that are absent stay."""

    lua = _stance("Lua code, run by the proxy.")
    modules = _stance("Wasm and other modules of code.")
    files = _stance("Files on the proxy's machine, read or written.")
    pipes = _stance("Sockets on the proxy's machine.")
    loopback = _stance("Destinations on the proxy's own machine, such as its administration page.")
    link_local = _stance("Destinations at link-local addresses and metadata services of clouds.")
    variables = _stance("Variables of the proxy's process.")
    unknown_fields = _stance(
        "Fields that the schema has not, which are left out of what is stored; commands of formats and "
        "resolvers of addresses that Envoy has not, which stay."
    )
    opaque = _stance("The bytes of messages whose types the schema has not.")


class LossThresholdIn(StrictSerializer):
    """The number or share of losing clients from which a write is refused without `accept_loss`; settings that are
    absent stay.
    """

    access_clients = Whole(required=False, min_value=1, max_value=MAX_ACCESS_CLIENTS, help_text=_ACCESS_CLIENTS_HELP)
    other_percent = Whole(required=False, min_value=0, max_value=MAX_OTHER_PERCENT, help_text=_OTHER_PERCENT_HELP)


class LossThresholdOut(serializers.Serializer[Any]):
    """The number or share of losing clients from which a write is refused without `accept_loss`."""

    access_clients = serializers.IntegerField(help_text=_ACCESS_CLIENTS_HELP)
    other_percent = serializers.IntegerField(help_text=_OTHER_PERCENT_HELP)


class EnvironmentPatchIn(StrictSerializer):
    """The settings of an environment to change; settings that are absent stay."""

    selectors = serializers.ListField(child=SelectorIn(), required=False, max_length=_MAX_SELECTORS)
    node_ids = serializers.ListField(
        child=GlobField(),
        required=False,
        max_length=_MAX_SELECTORS,
        help_text=_NODE_IDS_HELP,
    )
    default_effect = serializers.ChoiceField(choices=list(DEFAULT_EFFECTS), required=False, help_text=_DEFAULT_HELP)
    quarantine = serializers.ChoiceField(choices=[each.value for each in QuarantinePolicy], required=False)
    hold = Text(
        required=False,
        allow_null=True,
        max_length=_MAX_HOLD_CHARS,
        help_text=_HOLD_HELP,
    )
    content = ContentIn(required=False, help_text=_CONTENT_HELP)
    deep_validation = Flag(required=False, help_text=_DEEP_HELP)
    require_if_match = Flag(required=False, help_text=_IF_MATCH_HELP)
    loss_threshold = LossThresholdIn(required=False)
    rollout = RolloutSettingsField(required=False, help_text=ROLLOUT_HELP)
    freezes = FreezesField(required=False, help_text=FREEZES_HELP)
    review = ReviewField(required=False, help_text=REVIEW_HELP)


class EnvironmentIn(EnvironmentPatchIn):
    """A new environment. Unless `default_effect` says otherwise, clients may read what an access rule allows, and
    nothing else.
    """

    key = Text(max_length=63)

    def validate_key(self, value: str) -> str:
        """The environment's key, which stands in URLs, logs and texts for clients. Raises ValidationError for a text
        that cannot be a key.
        """
        if not re.fullmatch(ENVIRONMENT_KEY_PATTERN, value):
            raise ValidationError(
                "A key has 1 to 63 lower case letters, digits and dashes, and begins and ends with none of the latter."
            )
        return value


class EnvironmentOut(serializers.Serializer[Any]):
    """An environment with its settings, and how it stands now."""

    key = serializers.CharField()
    position = serializers.IntegerField(help_text="Environments are tried in this order.")
    selectors = SelectorOut(many=True)
    node_ids = serializers.ListField(child=serializers.CharField(), help_text=_NODE_IDS_HELP)
    default_effect = serializers.ChoiceField(choices=list(DEFAULT_EFFECTS), help_text=_DEFAULT_HELP)
    quarantine = serializers.ChoiceField(choices=[each.value for each in QuarantinePolicy])
    hold = serializers.CharField(allow_null=True)
    content = serializers.DictField(child=serializers.ChoiceField(choices=_STANCES), help_text=_CONTENT_HELP)
    deep_validation = serializers.BooleanField(help_text=_DEEP_HELP)
    require_if_match = serializers.BooleanField(help_text=_IF_MATCH_HELP)
    loss_threshold = LossThresholdOut()
    rollout = RolloutSettingsOut(help_text=ROLLOUT_HELP)
    freezes = FreezeOut(many=True, help_text=FREEZES_HELP)
    review = ReviewSettingsOut(help_text=REVIEW_HELP)
    frozen = FrozenOut(allow_null=True, help_text="The freeze that holds now, of several the one that ends last.")
    epoch = serializers.IntegerField(help_text="The snapshot that is served; 0 before the first.")
    generation = serializers.IntegerField(help_text="How many changes were written.")
    built_generation = serializers.IntegerField(help_text="The last one that a build covered.")
    status = serializers.ChoiceField(
        choices=[each.value for each in Headline], help_text="How it stands as a whole, what matters most first."
    )
    reason = serializers.CharField(help_text="Why it stands so: everything that is not as it should be.")
    summary = serializers.CharField(
        help_text="One sentence about what matters most: who lost or refuses what and since when, what is waited for, "
        "or how many clients have what is published. Times are in UTC."
    )
    statuses = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of its resources stand how, by status."
    )
    losses = serializers.IntegerField(
        help_text="Losses that nobody has resolved: by a change clients lost what they had."
    )


class EnvironmentWrittenOut(EnvironmentOut):
    """An environment after a write, with the change that the write made."""

    change = serializers.UUIDField(allow_null=True, help_text="The change this made; null when nothing had to change.")

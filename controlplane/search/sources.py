"""Where words stand in things of each kind, and who may find them.

Rights come first: what somebody may not read is never compared with their words, so that neither a result nor a count
nor a time tells of it. Of what only grows, the newest are searched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import (
    Case,
    Exists,
    IntegerField,
    Manager,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from controlplane.access.models import AccessRule, AccessRuleGroup, ClientGroup
from controlplane.accounts.principal import Allowed, Principal, Role
from controlplane.catalog.limiting import rows_allowed
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.token_rights import api_tokens_of, client_tokens_of
from controlplane.changesets.models import ChangeSet, ChangeSetAuthor
from controlplane.clients.models import Client, Stream
from controlplane.discussion.models import Comment
from controlplane.incidents.models import Incident
from controlplane.notify.models import Channel
from controlplane.rollouts.models import Rollout
from controlplane.search.values import Hit, Kind
from controlplane.snapshots.models import SnapshotRow
from xdscore.labels import label_words, unpacked

NEWEST: Final = 10_000
"""Of what only grows, how many are searched."""

_KEY: Final = "environment__key"
_ABOUT: Final = ("change__public_id", "incident__public_id", "resource__type", "resource__name")
_MIN_ID_CHARS: Final = 6
_MAX_NUMBER_CHARS: Final = 18
_HEX: Final = frozenset("0123456789abcdef")
_NONE: Final = Q(pk__in=())

Rows = QuerySet[Any]
Columns = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """What somebody may find. `keys`: of the environments that they read as a whole. `partly`: which resources of
    others they may read, by key.
    """

    principal: Principal
    keys: tuple[str, ...]
    partly: Mapping[str, Allowed] = field(default_factory=dict)

    @property
    def administers(self) -> bool:
        """Whether the principal administers the whole installation, and so may see people and channels."""
        return self.principal.may(Role.ADMIN, None)

    @property
    def administers_some(self) -> bool:
        """Whether the principal administers an environment."""
        return self.administers or any(self.principal.may(Role.ADMIN, key) for key in self.keys)


@dataclass(frozen=True, slots=True)
class Source:
    """Things of one kind.

    `rows`: those that somebody may find. `name`: the field by which they are called, and which counts most; empty where
    none does. `fields`:
    the others in which words stand. `columns`, `hit`: what is read of each, and what is made of it.
    `called`: a further condition that a word can meet, such as being an id. `order`: among those that fit alike.
    `nouns`: words for the kind itself, which each thing of it meets. `of_environment`: its rows have one.
    """

    kind: Kind
    rows: Callable[[Sight], Rows]
    name: str
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    hit: Callable[[Columns], Hit]
    order: tuple[str, ...] = ("-pk",)
    called: Callable[[str], Q] = lambda _: _NONE
    nouns: tuple[str, ...] = ()
    of_environment: bool = True

    def wanted(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words without those for the kind itself."""
        return tuple(word for word in words if word.lower() not in self.nouns)

    def meets(self, word: str) -> Q:
        """The condition that a thing meets a word, in any of its fields or by being called so."""
        found = self.called(word)
        for each in filter(None, (self.name, *self.fields)):
            found |= Q(**{f"{each}__icontains": word})
        return found

    def found(self, sight: Sight, words: Sequence[str], *, limit: int) -> tuple[Hit, ...]:
        """The first `limit` things that meet each word, those first whose name fits best. One query, or one more."""
        wanted = self.wanted(words)
        if not wanted:
            return ()
        rows = self.rows(sight).filter(self.meet_each(wanted, self.meets))
        ranked = rows.annotate(place=self.place(wanted)).order_by("place", *self.order)
        return tuple(self.hit(cast("Columns", row)) for row in ranked.values_list(*self.columns)[:limit])

    def meet_each(self, words: Sequence[str], meets: Callable[[str], Q]) -> Q:
        """The condition that a thing meets each word. One may be the key of its environment, beside others: by that
        alone all that is in it would be found.
        """
        if len(words) == 1 or not self.of_environment:
            return Q(*(meets(word) for word in words))
        any_word = Q()
        for word in words:
            any_word |= meets(word)
        return Q(any_word, *(meets(word) | Q(**{_KEY: word.lower()}) for word in words))

    def place(self, words: Sequence[str]) -> Case | Value:
        """How well a name fits, as a number: 0 where it is what is searched for, 1 where it begins so, 2 where it holds
        each word, 3 where the words stand elsewhere.
        """
        if not self.name:
            return Value(0)
        text = " ".join(words)
        holds = Q(*(Q(**{f"{self.name}__icontains": word}) for word in words))
        places = (Q(**{f"{self.name}__iexact": text}), Q(**{f"{self.name}__istartswith": text}), holds)
        ranks = (When(condition, then=Value(rank)) for rank, condition in enumerate(places))
        return Case(*ranks, default=Value(len(places)), output_field=IntegerField())


def resources_of(sight: Sight) -> "QuerySet[Resource]":
    """The resources that somebody may read, with roles that hold for some resources alone, too."""
    allowed = Q(environment__key__in=sight.keys)
    for key, limits in sight.partly.items():
        allowed |= Q(environment__key=key) & rows_allowed(limits)
    return Resource.objects.filter(allowed, deleted=False)


def _of_environments(rows: "Manager[Any]") -> Callable[[Sight], Rows]:
    return lambda sight: rows.filter(environment__key__in=sight.keys)


def _newest(rows: "Manager[Any]") -> Callable[[Sight], Rows]:
    """The newest rows alone: a table that only grows is not read through."""
    all_of = _of_environments(rows)

    def found(sight: Sight) -> Rows:
        # By the oldest that counts: a list of ten thousand ids would be gone through again for each row.
        oldest = all_of(sight).order_by("-pk").values("pk")[NEWEST - 1 : NEWEST]
        return all_of(sight).filter(pk__gte=Coalesce(Subquery(oldest), 0))

    return found


def _client_called(word: str) -> Q:
    # Where a stream comes from is looked up apart: a join would find a client once for each stream.
    there = Stream.objects.filter(client=OuterRef("pk"), closed_at=None, peer__contains=word)
    return Q(pk=word) | Q(Exists(there))


def _set_called(word: str) -> Q:
    by = ChangeSetAuthor.objects.filter(change_set=OuterRef("pk"), name__icontains=word)
    return _identified(word) | Q(Exists(by))


def _groups(sight: Sight) -> Rows:
    rows = ClientGroup.objects.filter(environment__key__in=sight.keys)
    return rows.annotate(said=Cast("matchers", TextField()))


def _rules(sight: Sight) -> Rows:
    rows = AccessRule.objects.filter(environment__key__in=sight.keys)
    return rows.annotate(kinds=Cast("types", TextField()))


def _rule_called(word: str) -> Q:
    for_group = AccessRuleGroup.objects.filter(rule=OuterRef("pk"), group__key__icontains=word)
    return Q(Exists(for_group)) | _numbered("pk", word)


def _channels(sight: Sight) -> Rows:
    return Channel.objects.all() if sight.administers else Channel.objects.none()


def _people(sight: Sight) -> Rows:
    return User.objects.all() if sight.administers else User.objects.none()


def _api_tokens(sight: Sight) -> Rows:
    return api_tokens_of(sight.principal).order_by()


def _client_tokens(sight: Sight) -> Rows:
    tokens = client_tokens_of(sight.principal) if sight.administers_some else client_tokens_of(sight.principal).none()
    return tokens.order_by()


def _numbered(column: str, word: str) -> Q:
    """The condition that a number is the word."""
    number = word.removeprefix("#")
    is_one = number.isascii() and number.isdigit() and len(number) <= _MAX_NUMBER_CHARS
    return Q(**{column: int(number)}) if is_one else _NONE


def _identified(word: str) -> Q:
    """The condition that the public id begins with the word. Ids are compared as such, so that the database's index
    finds those between the first and the last.
    """
    digits = word.replace("-", "").lower()
    if not _MIN_ID_CHARS <= len(digits) <= 32 or not set(digits) <= _HEX:
        return _NONE
    return Q(public_id__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))


def _resource_hit(row: Columns) -> Hit:
    key, word, name, owner, labels = row
    return Hit(Kind.RESOURCE, name, name, key, word, _joined(f"owner {owner}" if owner else "", labels))


def _client_hit(row: Columns) -> Hit:
    key, public_id, node_id, identity, cluster, seen, labels = row
    return Hit(Kind.CLIENT, public_id, node_id, key, text=_joined(identity or cluster, labels or ""), at=seen)


def _joined(text: str, labels: str) -> str:
    """What tells a thing apart, with its labels, which are stored so."""
    return ", ".join(filter(None, (text, *label_words(unpacked(labels)))))


def _incident_hit(row: Columns) -> Hit:
    key, public_id, word, name, message, state, at = row
    return Hit(Kind.INCIDENT, str(public_id), name or "?", key, word, message[:400], at=at, state=state)


def _change_hit(row: Columns) -> Hit:
    key, public_id, generation, message, author, at = row
    return Hit(
        Kind.CHANGE, str(public_id), message or str(public_id)[:8], key, text=f"number {generation}, by {author}", at=at
    )


def _change_set_hit(row: Columns) -> Hit:
    key, public_id, title, state, message, at = row
    return Hit(Kind.CHANGE_SET, str(public_id), title, key, text=message, at=at, state=state)


def _rollout_hit(row: Columns) -> Hit:
    key, public_id, state, why, at = row
    return Hit(Kind.ROLLOUT, str(public_id), f"rollout {str(public_id)[:8]}", key, text=why, at=at, state=state)


def _snapshot_hit(row: Columns) -> Hit:
    key, epoch, at = row
    return Hit(Kind.SNAPSHOT, str(epoch), f"snapshot {epoch}", key, at=at)


def _group_hit(row: Columns) -> Hit:
    key, number, name, said = row
    return Hit(Kind.GROUP, str(number), name, key, text=said)


def _rule_hit(row: Columns) -> Hit:
    key, number, pattern, effect, message = row
    return Hit(Kind.RULE, str(number), f"rule {number}: {effect} {pattern}", key, text=message)


def _comment_hit(row: Columns) -> Hit:
    key, public_id, author, text, at, change, incident, word, name = row
    about = "change" if change else "incident" if incident else word
    subject = str(change or incident or name)
    return Hit(Kind.COMMENT, str(public_id), author, key, about, text[:400], at=at, subject=subject)


def _channel_hit(row: Columns) -> Hit:
    public_id, name, kind = row
    return Hit(Kind.CHANNEL, str(public_id), name, text=kind)


def _token_hit(row: Columns) -> Hit:
    number, name, prefix = row
    return Hit(Kind.TOKEN, str(number), name, text=f"{prefix}…")


def _client_token_hit(row: Columns) -> Hit:
    number, subject, environment, hint = row
    return Hit(Kind.CLIENT_TOKEN, str(number), subject, environment, text=f"…{hint}")


def _person_hit(row: Columns) -> Hit:
    number, name, full = row[0], row[1], f"{row[2]} {row[3]}".strip()
    return Hit(Kind.PERSON, str(number), name, text=full)


RESOURCES: Final = Source(
    kind=Kind.RESOURCE,
    rows=resources_of,
    name="name",
    fields=("owner", "type", "labels"),
    columns=(_KEY, "type", "name", "owner", "labels"),
    hit=_resource_hit,
    order=("name", "type", "environment__position"),
    nouns=("resource", "resources"),
)
SOURCES: Final = (
    RESOURCES,
    Source(
        kind=Kind.CLIENT,
        rows=_of_environments(Client.objects),
        name="node_id",
        fields=("identity", "node_cluster", "family", "given__labels"),
        columns=(_KEY, "pk", "node_id", "identity", "node_cluster", "last_seen", "given__labels"),
        hit=_client_hit,
        order=("node_id", "pk"),
        called=_client_called,
        nouns=("client", "clients"),
    ),
    Source(
        kind=Kind.INCIDENT,
        rows=_newest(Incident.objects),
        name="name",
        fields=("type", "message", "normalised", "assignee", "author", "state"),
        columns=(_KEY, "public_id", "type", "name", "message", "state", "last_at"),
        hit=_incident_hit,
        order=("-last_at", "-pk"),
        called=_identified,
        nouns=("incident", "incidents"),
    ),
    Source(
        kind=Kind.CHANGE,
        rows=_newest(Change.objects),
        name="message",
        fields=("author", "owner"),
        columns=(_KEY, "public_id", "generation", "message", "author", "at"),
        hit=_change_hit,
        called=lambda word: _identified(word) | _numbered("generation", word),
        nouns=("change", "changes"),
    ),
    Source(
        kind=Kind.CHANGE_SET,
        rows=_newest(ChangeSet.objects),
        name="title",
        fields=("message", "state"),
        columns=(_KEY, "public_id", "title", "state", "message", "edited_at"),
        hit=_change_set_hit,
        called=_set_called,
        nouns=("set", "sets", "change-set", "change-sets"),
    ),
    Source(
        kind=Kind.ROLLOUT,
        rows=_newest(Rollout.objects),
        name="state",
        fields=("waits_for", "ended_because", "paused_because", "mode"),
        columns=(_KEY, "public_id", "state", "waits_for", "started_at"),
        hit=_rollout_hit,
        called=_identified,
        nouns=("rollout", "rollouts"),
    ),
    Source(
        kind=Kind.SNAPSHOT,
        rows=_of_environments(SnapshotRow.objects),
        name="",
        fields=(),
        columns=(_KEY, "epoch", "at"),
        hit=_snapshot_hit,
        called=lambda word: _numbered("epoch", word),
        nouns=("snapshot", "snapshots", "epoch"),
    ),
    Source(
        kind=Kind.GROUP,
        rows=_groups,
        name="key",
        fields=("said", "trust"),
        columns=(_KEY, "pk", "key", "said"),
        hit=_group_hit,
        order=("key", "pk"),
        nouns=("group", "groups"),
    ),
    Source(
        kind=Kind.RULE,
        rows=_rules,
        name="pattern",
        fields=("message", "effect", "kinds"),
        columns=(_KEY, "pk", "pattern", "effect", "message"),
        hit=_rule_hit,
        order=("environment__position", "position"),
        called=_rule_called,
        nouns=("rule", "rules"),
    ),
    Source(
        kind=Kind.COMMENT,
        rows=_newest(Comment.objects),
        name="text",
        fields=("author",),
        columns=(_KEY, "public_id", "author", "text", "at", *_ABOUT),
        hit=_comment_hit,
        nouns=("comment", "comments"),
    ),
    Source(
        kind=Kind.CHANNEL,
        rows=_channels,
        name="name",
        fields=("kind",),
        columns=("public_id", "name", "kind"),
        hit=_channel_hit,
        order=("name",),
        nouns=("channel", "channels"),
        of_environment=False,
    ),
    Source(
        kind=Kind.TOKEN,
        rows=_api_tokens,
        name="name",
        fields=(),
        columns=("pk", "name", "prefix"),
        hit=_token_hit,
        order=("name", "-pk"),
        nouns=("token", "tokens"),
        of_environment=False,
    ),
    Source(
        kind=Kind.CLIENT_TOKEN,
        rows=_client_tokens,
        name="subject",
        fields=("environment",),
        columns=("pk", "subject", "environment", "hint"),
        hit=_client_token_hit,
        order=("subject", "-pk"),
        nouns=("token", "tokens"),
        of_environment=False,
    ),
    Source(
        kind=Kind.PERSON,
        rows=_people,
        name="username",
        fields=("first_name", "last_name", "email"),
        columns=("pk", "username", "first_name", "last_name"),
        hit=_person_hit,
        order=("username",),
        nouns=("person", "people", "user", "users"),
        of_environment=False,
    ),
)

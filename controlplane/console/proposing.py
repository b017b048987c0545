"""Proposing: what a form would write becomes part of a change set instead, a new one or one that is there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.http import QueryDict

from controlplane.access.choices import EditSubject
from controlplane.access.values import Wish
from controlplane.accounts.principal import Principal
from controlplane.catalog.values import Edit, edit_key
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.selectors import change_set_get, change_sets_of
from controlplane.changesets.services import SetChanges, change_set_create, change_set_edit
from controlplane.changesets.values import MAX_MESSAGE_CHARS, MAX_TITLE_CHARS, SetState, SetView
from controlplane.common.errors import Conflict, NotFound
from controlplane.console.guarding import BREAKS, repeated
from controlplane.console.posted import one_line
from controlplane.console.states import look_of, look_of_set
from xdscore.codes import shown

ACTION: Final = "action"
PROPOSE: Final = "propose"
PROPOSED: Final = "It is in the change set. Nothing is published yet."
INTO: Final = "set_into"
TITLE: Final = "set_title"
_MOST: Final = 50
_NOT_PUBLISHED: Final = tuple(each for each in SetState if each is not SetState.PUBLISHED)


@dataclass(frozen=True, slots=True)
class Choice:
    """A change set to which something can be added. `value`: what the form sends, its id and the version that was
    shown; `chosen`: it is the one that the form names.
    """

    view: SetView
    value: str
    chosen: bool

    @property
    def stands(self) -> str:
        """How the change set stands, in a word or two."""
        return look_of(look_of_set(self.view.state)).label


@dataclass(frozen=True, slots=True)
class Proposal:
    """The part of a form that says into which change set its edits go.

    `drafts`, `others`: those that are there; adding to one of the others makes it a draft again. `more`: there are more
    that are not listed. `title`: that of a new one.
    """

    drafts: tuple[Choice, ...]
    others: tuple[Choice, ...]
    more: bool
    title: str
    max_title: int = MAX_TITLE_CHARS


def proposal_of(environment_key: str, given: QueryDict, *, chosen: str = "") -> Proposal:
    """What a form offers for proposing what it would write. `given`: the form as it was sent, so that nothing typed is
    lost; `chosen`: the id of the change set that the page is about, empty where it is about none.
    """
    found = change_sets_of(environment_key=environment_key, states=_NOT_PUBLISHED, limit=_MOST)
    wanted = given.get(INTO, "").partition(":")[0] if INTO in given else chosen
    choices = [Choice(each, f"{each.id}:{each.version}", each.id == wanted) for each in found.rows]
    return Proposal(
        tuple(each for each in choices if each.view.state is SetState.DRAFT),
        tuple(each for each in choices if each.view.state is not SetState.DRAFT),
        bool(found.after),
        given.get(TITLE, ""),
    )


@dataclass(frozen=True, slots=True)
class ProposalQuestion:
    """The question into which change set goes what a form would write.

    `fields`: those of the form, to be sent again with the answer.
    `breaking`: the same, to be sent again where the writer goes past the review instead; None where they may not, or
    nothing asks for a review.
    """

    proposal: Proposal
    fields: tuple[tuple[str, str], ...]
    breaking: tuple[tuple[str, str], ...] | None


def proposal_question(environment_key: str, given: QueryDict, *, may_break: bool) -> ProposalQuestion:
    """The question into which change set goes what a form would write. `given`: the form that was sent."""
    fields = repeated(given, without=(ACTION, INTO, TITLE, BREAKS))
    breaking = repeated(given, without=(INTO, TITLE, BREAKS)) if may_break else None
    return ProposalQuestion(proposal_of(environment_key, given), fields, breaking)


def propose(
    given: QueryDict,
    edits: Sequence[Edit] = (),
    wishes: Sequence[Wish] = (),
    *,
    environment_key: str,
    message: str,
    actor: Principal,
    request_id: str,
) -> str:
    """Put these edits, and these wishes about rules and groups, into the change set that the form names, or make a new
    one of them; returns its public id. `message`: what the form says of them, which a new one has as its message and,
    where no title was typed, as title.

    Raises Forbidden, NotFound, InputInvalid, and Conflict where the change set was edited since, or edits one of the
    resources, rules or groups already.
    """
    require(actor, Act.EDIT, environment_key)
    into, _, version = given.get(INTO, "").partition(":")
    if not into:
        message = one_line(message, "What changes, and why,", MAX_MESSAGE_CHARS) if message.strip() else ""
        title = given.get(TITLE, "").strip() or message[:MAX_TITLE_CHARS]
        return change_set_create(
            environment_key=environment_key,
            title=one_line(title, "The title of a change set", MAX_TITLE_CHARS),
            message=message,
            edits=edits,
            wishes=wishes,
            actor=actor,
            request_id=request_id,
        )
    # One text where there is none and where it is another environment's, which the writer may not see.
    absent = NotFound(f"There is no change set '{shown(into, 64)}' in '{environment_key}'. Nothing was changed.")
    try:
        detail = change_set_get(public_id=into)
    except NotFound:
        raise absent from None
    if detail.view.environment != environment_key:
        raise absent
    there = {*((each.type, each.name) for each in detail.entries), *(each.key for each in detail.wishes)}
    for word, name in (*map(edit_key, edits), *map(_wish_key, wishes)):
        if (word, name) in there:
            raise Conflict(
                f"Change set '{shown(detail.view.title)}' writes or deletes the {word} '{shown(name)}' already. "
                "Edit it there, or choose another change set. Nothing was changed."
            )
    change_set_edit(
        public_id=into,
        changes=SetChanges(adds=edits, wish_adds=wishes),
        version=int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0,
        actor=actor,
        request_id=request_id,
    )
    return into


def _wish_key(wish: Wish) -> tuple[str, str]:
    """What the set would call the rule or group; a rule to be made has no name yet."""
    named = str(wish.id) if wish.subject is EditSubject.RULE and wish.id is not None else wish.name
    return wish.subject.value, named

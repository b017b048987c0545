"""Proposing from the pages of access: what a form would write becomes part of a change set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from controlplane.access.choices import EditSubject
from controlplane.access.selectors import group_get, rule_get, rule_list, rule_state
from controlplane.access.values import Wish
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.access_forms import group_drafted
from controlplane.console.access_words import rule_sentence
from controlplane.console.pages import Page
from controlplane.console.posted import number_of
from controlplane.console.proposing import ACTION, INTO, PROPOSE, PROPOSED, propose

Wished = tuple[Sequence[Wish], str]
"""What a form would write, and a sentence that says it."""
ACT: Final = "act"
"""The field in which a form says, when it proposes, what it would have done."""


class AccessProposing(Page):
    """The base of the pages whose forms write rules and groups."""

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form as it was sent and, in one more, which of its buttons was pressed."""
        given = self.request.POST.copy()
        if given.get(ACTION, PROPOSE) != PROPOSE:
            given[ACT] = self.request.POST[ACTION]
        return given

    def proposed(self, wished: Wished) -> HttpResponse:
        """Ask into which change set what the form would write goes or, once that was answered, put it there."""
        wishes, says = wished
        if INTO not in self.request.POST:
            return self.proposal_page()
        try:
            public_id = propose(
                self.request.POST,
                wishes=wishes,
                environment_key=self.here.key,
                message=says,
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self.proposal_page(error)
        messages.success(self.request, PROPOSED)
        return redirect("change-set", public_id)


def wished_of(given: QueryDict, environment_key: str) -> Wished:
    """What a form of the page of access would write. Raises ControlPlaneError."""
    act = _ACTS.get(given.get(ACT, ""))
    if act is None:
        raise InputInvalid("There is nothing like that to propose. Nothing was changed.")
    return act(given, environment_key)


def _moved(given: QueryDict, environment_key: str) -> Wished:
    number, step = number_of(given, "id"), -1 if given[ACT] == "up" else 1
    order = [rule_state(row) for row in rule_list(environment_key=environment_key)]
    place = next((place for place, each in enumerate(order) if each.id == number), None)
    if place is None or not 0 <= place + step < len(order):
        raise InputInvalid(f"Rule {number} has no place to go to. Nothing was changed.")
    moved, other = order[place], order[place + step]
    return (
        Wish(EditSubject.RULE, "", moved.id, replace(moved.draft, position=other.draft.position)),
        Wish(EditSubject.RULE, "", other.id, replace(other.draft, position=moved.draft.position)),
    ), f"rule {moved.id} {'before' if step < 0 else 'behind'} rule {other.id}"


def _switched(given: QueryDict, environment_key: str) -> Wished:
    rule = rule_get(environment_key=environment_key, rule_id=number_of(given, "id"))
    draft = replace(rule.draft, enabled=not rule.draft.enabled)
    return [Wish(EditSubject.RULE, "", rule.id, draft)], f"rule {rule.id} {'on' if draft.enabled else 'off'}"


def _deleted(given: QueryDict, environment_key: str) -> Wished:
    rule = rule_get(environment_key=environment_key, rule_id=number_of(given, "id"))
    return [Wish(EditSubject.RULE, "", rule.id, None)], f"without rule {rule.id}: {rule_sentence(rule.draft)}"


def _group(given: QueryDict, environment_key: str) -> Wished:
    before, draft = given.get("before", ""), group_drafted(given)
    number = group_get(environment_key=environment_key, key=before).id if before else None
    return [Wish(EditSubject.GROUP, before or draft.key, number, draft)], f"client group {draft.key}"


def _group_deleted(given: QueryDict, environment_key: str) -> Wished:
    group = group_get(environment_key=environment_key, key=given.get("key", ""))
    return [Wish(EditSubject.GROUP, group.draft.key, group.id, None)], f"without client group {group.draft.key}"


_ACTS: Final[Mapping[str, Callable[[QueryDict, str], Wished]]] = {
    "up": _moved,
    "down": _moved,
    "switch": _switched,
    "delete": _deleted,
    "group": _group,
    "group-delete": _group_deleted,
}

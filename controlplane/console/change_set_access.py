"""The rules and groups of a change set: how its page shows them, and the forms that edit them in it."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.access.choices import EditSubject
from controlplane.access.selectors import group_list
from controlplane.access.steps import access_text
from controlplane.access.values import POSITION_FIRST, GroupDraft, RuleDraft, Wish
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.selectors import SetDetail
from controlplane.changesets.services import SetChanges, change_set_edit
from controlplane.changesets.values import Remark, SetState, SetWish
from controlplane.common.errors import Conflict, ControlPlaneError, NotFound
from controlplane.console.access_forms import (
    MAX_MESSAGE_CHARS,
    group_drafted,
    group_line,
    group_typed,
    position_asked,
    rule_drafted,
)
from controlplane.console.access_words import rule_sentence
from controlplane.console.change_sets import set_entered
from controlplane.console.pages import Page
from controlplane.console.posted import number_of
from controlplane.console.states import look_of, look_of_set
from xdscore.resource_types import RESOURCE_TYPES

_PAGES: Final = {EditSubject.RULE: "change-set-rule", EditSubject.GROUP: "change-set-group"}

_PLACES: Final = {POSITION_FIRST: " It goes before all other rules.", None: " It goes behind all other rules."}


class Said(Protocol):
    """What somebody said, as the page of a change set shows it."""

    @property
    def remark(self) -> Remark:
        """What was said."""


@dataclass(frozen=True, slots=True)
class WishLine:
    """A rule or group of the set. `noun`, `label`: what it is, and what it is called; `sentence`: what a rule says,
    empty for a group. `text`: the difference from what the set was made from. `edit_url`: the form with the set's
    content; empty for a deletion. `said`: the comments about it.
    """

    wish: SetWish
    noun: str
    label: str
    sentence: str
    text: str
    edit_url: str
    said: tuple[Said, ...]

    @property
    def word(self) -> str:
        """What forms call it: `rule` or `group`."""
        return self.wish.wish.subject.value

    @property
    def name(self) -> str:
        """The name by which forms name it."""
        return self.wish.wish.name

    @property
    def caption(self) -> str:
        """What the difference is called for people who hear the page."""
        return f"What it changes of {self.noun} {self.label}"


def wish_lines(detail: SetDetail, said: Sequence[Said]) -> list[WishLine]:
    """What a change set does with rules and groups, in the order in which it has them."""
    return [_line(each, detail.view.id, said) for each in detail.wishes]


def _line(each: SetWish, change_set: str, said: Sequence[Said]) -> WishLine:
    wish, is_rule = each.wish, each.wish.subject is EditSubject.RULE
    draft = wish.draft if wish.draft is not None else None
    url = f"{reverse(_PAGES[wish.subject], args=[change_set])}?{urlencode({'name': wish.name})}"
    return WishLine(
        wish=each,
        noun="rule" if is_rule else "client group",
        label=wish.name,
        sentence=f"{rule_sentence(draft)}{_PLACES.get(draft.position, '')}" if isinstance(draft, RuleDraft) else "",
        text=access_text(f"{wish.subject.value}/{wish.name}", each.before, each.after),
        edit_url=url if draft is not None else "",
        said=tuple(one for one in said if (one.remark.type, one.remark.name) == each.key),
    )


class _WishPage(Page):
    """The base of the pages that edit what a change set makes of a rule or group."""

    needs = {"GET": None, "POST": None}
    subject: EditSubject
    detail: SetDetail

    def get(self, request: HttpRequest, change_set_id: UUID) -> HttpResponse:  # noqa: ARG002 - Django's
        """The form, filled with what the set has."""
        return self._form(self._entered(change_set_id))

    def post(self, request: HttpRequest, change_set_id: UUID) -> HttpResponse:
        """Put what the form says into the set, which becomes a draft."""
        wish = self._entered(change_set_id)
        try:
            changed = change_set_edit(
                public_id=self.detail.view.id,
                changes=SetChanges(wish_adds=[replace(wish, draft=self.drafted(wish))]),
                version=number_of(request.POST, "version"),
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self._form(wish, error)
        messages.success(request, "It is in the change set, which is a draft." if changed else "Nothing had to change.")
        return redirect("change-set", self.detail.view.id)

    @abstractmethod
    def drafted(self, wish: Wish) -> RuleDraft | GroupDraft:
        """What the form makes of the rule or group. Raises ControlPlaneError."""

    @abstractmethod
    def fields(self, wish: Wish, *, typed: bool) -> dict[str, Any]:
        """The template values of the form's fields: as they were typed, or as the set has them."""

    def _form(self, wish: Wish, error: ControlPlaneError | None = None) -> HttpResponse:
        view, conflict = self.detail.view, isinstance(error, Conflict)
        typed = self.request.POST.get("version", "")
        context = {
            **self.fields(wish, typed=error is not None),
            "view": view,
            "name": wish.name,
            "back_url": reverse("change-set", args=[view.id]),
            # After a conflict the form is about the version of now: who sends it once more knows of the other edit.
            "set_version": view.version if conflict or not typed else typed,
            "conflict": conflict,
            "is_draft": view.state is SetState.DRAFT,
            "stands": look_of(look_of_set(view.state)).label,
            "error": error,
        }
        return self.page(context, status=200 if error is None else error.status)

    def _entered(self, change_set_id: UUID) -> Wish:
        """What the set makes of the rule or group that the URL names. Raises NotFound, Forbidden where the user may not
        edit change sets, and Conflict where this one is published.
        """
        self.detail = set_entered(self, change_set_id)
        require(self.principal, Act.EDIT, self.here.key)
        if Act.EDIT not in self.detail.acts:
            raise Conflict("This change set is published: what it wrote is edited under Access.")
        key = (self.subject.value, self.request.GET.get("name", ""))
        found = next((each.wish for each in self.detail.wishes if each.key == key), None)
        if found is None or found.draft is None:
            raise NotFound("The change set writes no such rule or group.")
        return found


class ChangeSetRulePage(_WishPage):
    """The page to edit what a change set makes of an access rule."""

    template = "changesets/rule.html"
    subject = EditSubject.RULE

    def drafted(self, wish: Wish) -> RuleDraft:
        """The rule in the form, at the place that the set has for it; of a new one the form says the place."""
        kept = wish.draft.position if isinstance(wish.draft, RuleDraft) else None
        position = position_asked(self.request.POST) if self._is_placed(wish) else kept
        return replace(rule_drafted(self.request.POST), position=position)

    def fields(self, wish: Wish, *, typed: bool) -> dict[str, Any]:
        """The rule, and the groups that there are or that the set makes."""
        draft = self.drafted(wish) if typed or not isinstance(wish.draft, RuleDraft) else wish.draft
        here = group_list(environment_key=self.here.key).values_list("key", flat=True)
        made = (each.wish.draft.key for each in self.detail.wishes if isinstance(each.wish.draft, GroupDraft))
        return {
            "draft": draft,
            "number": 0 if self._is_placed(wish) else wish.id or -1,
            "first": draft.position == POSITION_FIRST,
            "groups": sorted({*here, *made, *draft.client_groups}),
            "types": RESOURCE_TYPES,
            "max_message": MAX_MESSAGE_CHARS,
        }

    def _is_placed(self, wish: Wish) -> bool:
        """Whether the form asks for the place: of a new rule that is to go before or behind all others."""
        draft = wish.draft
        return wish.id is None and isinstance(draft, RuleDraft) and draft.position in (None, POSITION_FIRST)


class ChangeSetGroupPage(_WishPage):
    """The page to edit what a change set makes of a client group."""

    template = "changesets/group.html"
    subject = EditSubject.GROUP

    def drafted(self, wish: Wish) -> GroupDraft:  # noqa: ARG002 - the form says all of it
        """The group in the form."""
        return group_drafted(self.request.POST)

    def fields(self, wish: Wish, *, typed: bool) -> dict[str, Any]:
        """The group as the set has it or, after a mistake, as it was typed."""
        draft = wish.draft
        if typed or not isinstance(draft, GroupDraft):
            return {"group": group_typed(self.request.POST)}
        return {"group": group_line(draft)}


urlpatterns = [
    path("change-sets/<uuid:change_set_id>/rule", ChangeSetRulePage.as_view(), name="change-set-rule"),
    path("change-sets/<uuid:change_set_id>/group", ChangeSetGroupPage.as_view(), name="change-set-group"),
]

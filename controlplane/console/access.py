"""Who may read what: the rules in their order, the groups they speak of, and a form that tries them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final

from django.conf import settings
from django.contrib import messages
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.access.cases import case_create, case_delete
from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessRule
from controlplane.access.selectors import (
    case_list,
    case_state,
    cases_try,
    group_list,
    group_state,
    rule_get,
    rule_list,
    rule_state,
)
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_move,
    rule_update,
)
from controlplane.access.values import AccessWritten, Case, CaseResult, RuleDraft, RuleState, SavedCase, Wish
from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.config.loading import Config
from controlplane.console.access_forms import (
    EFFECTS,
    MAX_MESSAGE_CHARS,
    GroupLine,
    group_drafted,
    group_line,
    position_asked,
    rule_drafted,
)
from controlplane.console.access_opening import Opening, opening_of
from controlplane.console.access_proposing import AccessProposing, wished_of
from controlplane.console.access_words import rule_sentence
from controlplane.console.lists import FINDINGS, found_or_not
from controlplane.console.pages import PART
from controlplane.console.places import Place, Section
from controlplane.console.posted import number_of
from controlplane.console.proposing import ACTION, PROPOSE
from controlplane.console.row_lists import RowsPage
from controlplane.explain.selectors import rules_review
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Option, options
from controlplane.listing.tables import Column
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.findings import Finding
from xdscore.names import name_problem
from xdscore.resource_types import RESOURCE_TYPES, by_word

_MAX_CASES_SHOWN: Final = 100
_MAX_GROUPS_SHOWN: Final = 200
_MAX_FACT_CHARS: Final = 2_048
_NOT_CONFIRMED: Final = (
    "No client group is chosen: the rule would speak of every client. Choose groups, or confirm below that every "
    "client is meant. Nothing was changed."
)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """An access rule in the list, with the sentence that says what it does, and what was found about it."""

    rule: RuleState
    sentence: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class CaseLine:
    """A saved case in the list, with its result under the rules as they are now."""

    saved: SavedCase
    result: CaseResult


class AccessPage(AccessProposing, RowsPage):
    """The page with the access rules, client groups and saved cases of an environment and, where the URL has a case,
    the result of trying it. Rules have one order only: the one in which they decide.
    """

    template = "access/rules.html"
    needs = {"GET": Role.VIEWER, "POST": Role.ACCESS_EDITOR}
    frame = Frame(
        "rules",
        "rules",
        "access",
        (
            Filter("text", "Names or words", max_chars=MAX_MESSAGE_CHARS, width="wide"),
            Filter("effect", "Effect", Kind.CHOICE, options(tuple(EFFECTS))),
            Filter("group", "Client group", Kind.CHOICE, free=True),
            Filter("speaks", "Type", Kind.CHOICE, tuple(Option(each.word, each.title) for each in RESOURCE_TYPES)),
            Filter("state", "State", Kind.CHOICE, options(("on", "off"))),
            Filter("findings", "Findings", Kind.CHOICE, FINDINGS),
        ),
    )
    columns: ClassVar[Sequence[Column[RuleLine]]] = (
        Column("rule", lambda line: line.rule.id),
        Column("position", lambda line: line.rule.draft.position),
        Column("effect", lambda line: line.rule.draft.effect.value),
        Column("pattern", lambda line: line.rule.draft.pattern),
        Column("client_groups", lambda line: " ".join(line.rule.draft.client_groups)),
        Column("types", lambda line: " ".join(line.rule.draft.types)),
        Column("message", lambda line: line.rule.draft.message),
        Column("on", lambda line: line.rule.draft.enabled),
        Column("findings", lambda line: len(line.findings)),
        Column("sentence", lambda line: line.sentence),
    )

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Carry out the form's action and redirect to the page it was sent from. Where the form only asks, while
        somebody edits a group, answer what clients would lose by the change.
        """
        if PART in request.headers:
            return self.foreseen(lambda: self._group_written(request.POST, environment_key, dry_run=True).loss)
        acts: Mapping[str, Callable[[QueryDict, str], str]] = {
            "up": self._move,
            "down": self._move,
            "switch": self._switch,
            "delete": self._delete,
            "group": self._group,
            "group-delete": self._group_delete,
            "case": self._case,
            "case-delete": self._case_delete,
        }
        act = acts.get(request.POST.get(ACTION, ""))
        try:
            if request.POST.get(ACTION) == PROPOSE:
                return self.proposed(wished_of(request.POST, environment_key))
            if act is None:
                raise InputInvalid("There is no such action. Nothing was changed.")
            place = act(request.POST, environment_key)
        except ControlPlaneError as error:
            return self.answered({"error": error}, status=error.status)
        return redirect(f"{request.get_full_path()}#{place}")

    def rows(self, asked: Asked) -> QuerySet[AccessRule]:
        """The rules that fit the filters, in the order in which they are tried."""
        rows = rule_list(environment_key=self.here.key)
        if text := asked.text("text"):
            rows = rows.filter(Q(pattern__icontains=text) | Q(message__icontains=text))
        if effect := asked.text("effect"):
            rows = rows.filter(effect=effect)
        if group := asked.text("group"):
            rows = rows.filter(client_groups__key=group)
        if word := asked.text("speaks"):
            # Without types it speaks of all of them.
            rows = rows.annotate(kinds=Cast("types", TextField()))
            rows = rows.filter(Q(types=[]) | Q(kinds__contains=f'"{word}"'))
        if state := asked.text("state"):
            rows = rows.filter(enabled=state == "on")
        if (found := found_or_not(asked)) is not None:
            rows = rows.filter(pk__in=self._review) if found else rows.exclude(pk__in=self._review)
        return rows

    def line(self, row: AccessRule) -> RuleLine:
        """A rule as the list shows it."""
        rule = rule_state(row)
        return RuleLine(rule, rule_sentence(rule.draft), tuple(self._review.get(rule.id, ())))

    def choices(self) -> Mapping[str, Sequence[Option]]:
        """The client groups."""
        return {"group": options([each.key for each in self._groups])}

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """Groups, cases, and what trying a case says."""
        key = self.here.key
        saved = [case_state(row) for row in case_list(environment_key=key)[:_MAX_CASES_SHOWN]]
        results = cases_try(environment_key=key, cases=tuple(each.case for each in saved))
        return {
            "groups": self._groups,
            "cases": [CaseLine(each, result) for each, result in zip(saved, results, strict=True)],
            "broken": sum(not result.ok for result in results),
            "types": RESOURCE_TYPES,
            "effects": tuple(EFFECTS),
            "tried": self.request.GET,
            **self._tried(self.request.GET, key),
        }

    @cached_property
    def _groups(self) -> Sequence[GroupLine]:
        """The first client groups."""
        rows = group_list(environment_key=self.here.key)[:_MAX_GROUPS_SHOWN]
        return [group_line(group_state(row).draft) for row in rows]

    @cached_property
    def _review(self) -> Mapping[int, Sequence[Finding]]:
        """What was found about each rule, by its id."""
        found: dict[int, list[Finding]] = {}
        for number, finding in rules_review(environment_key=self.here.key):
            found.setdefault(number, []).append(finding)
        return found

    def _tried(self, given: QueryDict, environment_key: str) -> dict[str, object]:
        """The template values for the case in the URL and its result; empty where the URL has none."""
        if not given.get("name"):
            return {}
        try:
            case = _case_of(given)
        except InputInvalid as error:
            return {"try_error": error.detail}
        [result] = cases_try(environment_key=environment_key, cases=(case,))
        return {"result": result, "kind": by_word[case.type]}

    def _move(self, given: QueryDict, environment_key: str) -> str:
        number = number_of(given, "id")
        rule_move(
            environment_key=environment_key,
            rule_id=number,
            earlier=given["action"] == "up",
            actor=self.principal,
            request_id=self.request_id,
            consent=self.consent,
        )
        return f"rule-{number}"

    def _switch(self, given: QueryDict, environment_key: str) -> str:
        before = rule_get(environment_key=environment_key, rule_id=number_of(given, "id"))
        draft = replace(before.draft, enabled=not before.draft.enabled)
        self._say(
            rule_update(
                environment_key=environment_key,
                rule_id=before.id,
                draft=draft,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            ),
            f"Rule {before.id} is {'on' if draft.enabled else 'off'}.",
        )
        return f"rule-{before.id}"

    def _delete(self, given: QueryDict, environment_key: str) -> str:
        number = number_of(given, "id")
        self._say(
            rule_delete(
                environment_key=environment_key,
                rule_id=number,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            ),
            f"Rule {number} is gone.",
        )
        return "rules"

    def _group(self, given: QueryDict, environment_key: str) -> str:
        written = self._group_written(given, environment_key, dry_run=False)
        self._say(written, f"Group {given.get('key', '').strip()} is kept.")
        return "groups"

    def _group_written(self, given: QueryDict, environment_key: str, *, dry_run: bool) -> AccessWritten:
        draft, before = group_drafted(given), given.get("before", "")
        if before:
            return group_update(
                environment_key=environment_key,
                key=before,
                draft=draft,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
                dry_run=dry_run,
            )
        return group_create(
            environment_key=environment_key,
            draft=draft,
            actor=self.principal,
            request_id=self.request_id,
            consent=self.consent,
            dry_run=dry_run,
        )

    def _group_delete(self, given: QueryDict, environment_key: str) -> str:
        key = given.get("key", "")
        self._say(
            group_delete(
                environment_key=environment_key,
                key=key,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            ),
            f"Group {key} is gone.",
        )
        return "groups"

    def _case(self, given: QueryDict, environment_key: str) -> str:
        case_create(
            environment_key=environment_key,
            case=_case_of(given),
            blocking=given.get("blocking") == "on",
            actor=self.principal,
            request_id=self.request_id,
        )
        messages.success(self.request, "The case is kept, and tried at every change of the rules.")
        return "cases"

    def _case_delete(self, given: QueryDict, environment_key: str) -> str:
        case_delete(
            environment_key=environment_key,
            case_id=number_of(given, "id"),
            actor=self.principal,
            request_id=self.request_id,
        )
        return "cases"

    def _say(self, written: AccessWritten, sentence: str) -> None:
        messages.success(self.request, sentence if written.change_id else "Nothing had to change.")


class RulePage(AccessProposing):
    """The page to create an access rule or, where the URL has an `id`, to change that one."""

    template = "access/rule.html"
    needs = {"GET": Role.ACCESS_EDITOR, "POST": Role.ACCESS_EDITOR}

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The form, filled with the stored rule where the URL has an `id`, else with the values in the URL."""
        if "id" in request.GET:
            rule = rule_get(environment_key=environment_key, rule_id=number_of(request.GET, "id"))
            return self._page(rule.draft, rule.id)
        given = request.GET
        effect = EFFECTS.get(given.get("effect", ""), Effect.ALLOW)
        types = tuple(word for word in given.getlist("types") if word in by_word)
        known = set(group_list(environment_key=environment_key).values_list("key", flat=True))
        groups = tuple(sorted(known.intersection(given.getlist("groups"))))
        draft = RuleDraft(effect, given.get("pattern", ""), client_groups=groups, types=types)
        instead = number_of(given, "instead") if given.get("instead") else 0
        return self._page(draft, 0, first="first" in given, instead=instead)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Store the rule. Where the form only asks, while somebody fills it in, answer what clients would lose by the
        rule.
        """
        number = number_of(request.POST, "id") if request.POST.get("id") else 0
        draft, first = rule_drafted(request.POST), request.POST.get("place") == "first"
        if PART in request.headers:
            return self.foreseen(lambda: self._written(draft, number, first=first, dry_run=True).loss)
        opening = self._opening(draft, number, first=first)
        if opening is not None and opening.confirms and request.POST.get("confirm") != opening.confirms:
            return self._page(draft, number, first=first, error=InputInvalid(_NOT_CONFIRMED))
        if request.POST.get(ACTION) == PROPOSE:
            wished = replace(draft, position=None if number else position_asked(request.POST))
            return self.proposed(([Wish(EditSubject.RULE, "", number or None, wished)], rule_sentence(draft)))
        try:
            written = self._written(draft, number, first=first, dry_run=False)
        except ControlPlaneError as error:
            return self._page(draft, number, first=first, error=error)
        messages.success(request, f"Rule {written.id}: {rule_sentence(draft)}")
        return redirect(f"{reverse('access', args=[environment_key])}#rule-{written.id}")

    @property
    def leave(self) -> str:
        """The URL to which cancelling leads: the form with the stored rule, or the list of rules."""
        number = self.request.POST.get("id", "")
        own = reverse("access-rule", args=[self.here.key])
        return f"{own}?{urlencode({'id': number})}" if number else reverse("access", args=[self.here.key])

    def _written(self, draft: RuleDraft, number: int, *, first: bool, dry_run: bool) -> AccessWritten:
        if number:
            return rule_update(
                environment_key=self.here.key,
                rule_id=number,
                draft=draft,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
                dry_run=dry_run,
            )
        return rule_create(
            environment_key=self.here.key,
            draft=draft,
            actor=self.principal,
            request_id=self.request_id,
            first=first,
            consent=self.consent,
            dry_run=dry_run,
        )

    def _opening(self, draft: RuleDraft, number: int, *, first: bool) -> Opening | None:
        config: Config = settings.PARLEY
        return opening_of(draft, number=number, first=first, environment_key=self.here.key, limits=config.limits)

    def _page(
        self,
        draft: RuleDraft,
        number: int,
        *,
        first: bool = False,
        instead: int = 0,
        error: ControlPlaneError | None = None,
    ) -> HttpResponse:
        groups = group_list(environment_key=self.here.key)
        context = {
            "draft": draft,
            "number": number,
            "first": first,
            "instead": instead,
            "opening": self._opening(draft, number, first=first),
            "groups": [row.key for row in groups],
            "types": RESOURCE_TYPES,
            "error": error,
            "max_message": MAX_MESSAGE_CHARS,
        }
        return self.page(context, status=200 if error is None else error.status)


def _case_of(given: QueryDict) -> Case:
    """The case that the fields of a form describe. Raises InputInvalid."""
    kind = by_word.get(given.get("type", ""))
    if kind is None:
        raise InputInvalid("Choose a resource type. Nothing was changed.")
    name = given.get("name", "")
    if problem := name_problem(name):
        raise InputInvalid(f"The name {problem}. Nothing was changed.")
    facts = ClientFacts(
        identity=given.get("identity", "").strip()[:_MAX_FACT_CHARS],
        node_id=given.get("node_id", "").strip()[:_MAX_FACT_CHARS],
        node_cluster=given.get("cluster", "").strip()[:_MAX_FACT_CHARS],
    )
    return Case(facts, kind.word, name, EFFECTS.get(given.get("expect", ""), Effect.ALLOW))


urlpatterns = [
    path("e/<str:environment_key>/access", AccessPage.as_view(), name="access"),
    path("e/<str:environment_key>/access/rule", RulePage.as_view(), name="access-rule"),
]
PLACES = (Place(Section.CONFIGURATION, 20, "Access", "shield-lock", "access", also=("access-rule", "client-groups")),)

"""One act upon many resources: what is meant and what will happen, before it is done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.bulk.selecting import chosen_of
from controlplane.bulk.services import bulk_apply, bulk_edits, bulk_plan
from controlplane.bulk.values import PROPOSABLE, ROLE_OF, Bulk, BulkAct, Chosen, bulk_check
from controlplane.catalog.rights import require, require_some
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.bulk_words import ACTS, ActWords
from controlplane.console.guarding import loss_shown
from controlplane.console.pages import Page
from controlplane.console.posted import MAX_REASON_CHARS
from controlplane.console.proposing import INTO, PROPOSE, PROPOSED, propose
from controlplane.console.resources import ResourcesPage, resource_url, rows_asked
from xdscore.findings import Finding, Severity
from xdscore.labels import LabelEdits, edit_problems, edits_read
from xdscore.names import canonical, name_problem
from xdscore.resource_types import by_word
from xdscore.schema.codes import VALUE_REFUSED

_SHOWN: Final = 25
_MAX_CHOSEN_CHARS: Final = 2_000_000


_BY_WORD: Final[Mapping[str, ActWords]] = {each.act.value: each for each in ACTS}


@dataclass(frozen=True, slots=True)
class Row:
    """A resource that is meant, with the URL of its page."""

    chosen: Chosen
    url: str


class BulkPage(Page):
    """The page that says what will be done with the resources that were chosen in the list, and does it."""

    template = "resources/bulk.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}
    why = "message"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The list, in which one chooses."""
        return redirect("resources", environment_key)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Show what will happen; once that was agreed to, do it, or put it into a change set."""
        words = _BY_WORD.get(request.POST.get("act", ""))
        if words is None:
            raise InputInvalid("The form names nothing to do. Nothing was changed.")
        if words.needs_operator:
            require(self.principal, Role.OPERATOR, environment_key)
        else:
            require_some(self.principal, Role.EDITOR, environment_key)
        chosen: tuple[Chosen, ...] = ()
        try:
            chosen = self._chosen(words.act)
            if request.POST.get("action") == PROPOSE and words.act in PROPOSABLE:
                return self._proposed(Bulk(words.act, chosen))
            if request.POST.get("sure") != "1":
                return self._asked(words, chosen)
            made = bulk_apply(
                environment_key=environment_key,
                bulk=self._bulk(words.act, chosen),
                actor=self.principal,
                message=request.POST.get("message", "").strip()[:1_000],
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self._page(words, chosen, {"error": error}, error.status)
        if not made.changed:
            messages.info(request, "Nothing had to change: everything is as you asked.")
            return redirect(self.leave)
        return redirect("change", made.change_id)

    @property
    def leave(self) -> str:
        """The URL of the list, filtered as it was."""
        query = urlencode(self._filters)
        return f"{reverse('resources', args=[self.here.key])}{'?' if query else ''}{query}"

    @property
    def _filters(self) -> Mapping[str, str]:
        """What the list was filtered by."""
        given = ((each.name, self.request.POST.get(f"f_{each.name}", "")) for each in ResourcesPage.frame.filters)
        return {name: value for name, value in given if value}

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form, which name each resource at the revision that was shown."""
        given = self.request.POST.copy()
        for key in ("pick", "all"):
            given.pop(key, None)
        given["chosen"] = _lines(self._chosen(BulkAct(given.get("act", ""))))
        return given

    def _asked(self, words: ActWords, chosen: tuple[Chosen, ...]) -> HttpResponse:
        """The question, with what is known of the answer beforehand."""
        if words.act not in PROPOSABLE:
            bulk_check(Bulk(words.act, chosen, labels={"any": None}, reason="asked for"))
            return self._page(words, chosen)
        planned = bulk_plan(environment_key=self.here.key, bulk=Bulk(words.act, chosen), actor=self.principal)
        found = {"shown": loss_shown(planned.loss, self.principal), "findings": planned.findings}
        return self._page(words, chosen, found)

    def _page(
        self,
        words: ActWords,
        chosen: tuple[Chosen, ...],
        context: Mapping[str, object] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        given = self.request.POST
        rows = [Row(each, resource_url(self.here.key, *each.key)) for each in chosen[:_SHOWN]]
        return self.page(
            {
                "words": words,
                "rows": rows,
                "count": len(chosen),
                "more": len(chosen) - len(rows),
                "chosen": _lines(chosen),
                "filters": [(f"f_{name}", value) for name, value in self._filters.items()],
                "given": {key: given.get(key, "") for key in ("owner", "labels", "message")},
                "proposable": words.act in PROPOSABLE,
                "leave": self.leave,
                **(context or {}),
            },
            status=status,
        )

    def _proposed(self, bulk: Bulk) -> HttpResponse:
        """Ask into which change set it goes or, once that was answered, put it there."""
        given = self.request.POST
        if INTO not in given:
            return self.proposal_page()
        try:
            public_id = propose(
                given,
                bulk_edits(environment_key=self.here.key, bulk=bulk, actor=self.principal),
                environment_key=self.here.key,
                message=given.get("message", "").strip()[:1_000] or bulk.words,
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self.proposal_page(error)
        messages.success(self.request, PROPOSED)
        return redirect("change-set", public_id)

    def _chosen(self, act: BulkAct) -> tuple[Chosen, ...]:
        """The resources that the form means. Raises InputInvalid and InputTooLarge."""
        given = self.request.POST
        text = given.get("chosen", "")
        if text:
            if len(text) > _MAX_CHOSEN_CHARS:
                raise InputInvalid("The form names more resources than can be chosen at once. Nothing was changed.")
            return tuple(map(_read, filter(None, (line.removesuffix("\r") for line in text.split("\n")))))
        if given.get("all") == "1":
            asked = ResourcesPage.frame.read(self._filters, timezone.now())
            asked.require()
            allowed = self.principal.allowed(ROLE_OF[act], self.here.key)
            return chosen_of(rows_asked(self.here.key, asked, allowed=allowed), act)
        return tuple(map(_read, given.getlist("pick")))

    def _bulk(self, act: BulkAct, chosen: tuple[Chosen, ...]) -> Bulk:
        """The act with what the form says of it. Raises InputInvalid."""
        given = self.request.POST
        owner = given.get("owner", "").strip()
        if len(owner) > 150 or not owner.isprintable():
            raise InputInvalid("An owner is one line of at most 150 characters. Nothing was changed.")
        labels = labels_typed(given.get("labels", "")) if act is BulkAct.LABELS else {}
        return Bulk(act, chosen, owner, labels, given.get("message", "").strip()[:MAX_REASON_CHARS])


def labels_typed(text: str) -> LabelEdits:
    """The edits of labels that somebody typed, such as `team=pay old-`. Raises InputInvalid with every problem."""
    try:
        edits = edits_read(text.replace(",", " ").split())
    except ValueError as error:
        raise InputInvalid(f"{error} Nothing was changed.") from None
    if problems := edit_problems(edits):
        findings = tuple(Finding(VALUE_REFUSED.code, Severity.ERROR, problem) for problem in problems)
        raise InputInvalid("A label cannot be written so. Nothing was changed.", findings=findings)
    return edits


def _lines(chosen: tuple[Chosen, ...]) -> str:
    """The resources as a form repeats them; their names as in a URL, for they may hold any character."""
    return "\n".join(f"{each.kind.word} r{each.revision} {quote(each.name, safe='')}" for each in chosen)


def _read(text: str) -> Chosen:
    """The resource in a text such as `cluster r3 pay`, in which the name is as in a URL. Raises NotFound."""
    word, _, rest = text.partition(" ")
    revision, _, name = rest.partition(" ")
    name, number = unquote(name), revision.removeprefix("r")
    if word not in by_word or not (number.isascii() and number.isdigit() and len(number) < 10) or name_problem(name):
        raise NotFound("The form names something that is no resource. Choose again. Nothing was changed.")
    return Chosen(by_word[word], canonical(name), int(number))


urlpatterns = [
    path("e/<str:environment_key>/resources/bulk", BulkPage.as_view(), name="resources-bulk"),
]

"""The editor: a text, what is wrong with it, what storing it would change, and storing it.

Works as a plain form; with scripts the same addresses answer parts of the page while somebody types. A text that may
hold secrets is never sent back.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import path, reverse

from controlplane.accounts.principal import Role
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.freezes import WriteFrozen
from controlplane.catalog.limiting import write_check
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.reading import NOTHING_KEPT, Kept
from controlplane.catalog.review import WriteUnreviewed
from controlplane.catalog.rights import OnSome
from controlplane.catalog.selectors import resource_get, resource_list
from controlplane.catalog.services import secrets_read_record
from controlplane.catalog.values import Existing, Expectation
from controlplane.common.errors import ControlPlaneError, InputTooLarge
from controlplane.console.drafts import (
    Checked,
    Draft,
    NameTaken,
    draft_check,
    draft_edits,
    draft_save,
    manifests_of_text,
)
from controlplane.console.editor_form import FIELDS, fill, form_values
from controlplane.console.guarding import loss_shown
from controlplane.console.naming import Naming
from controlplane.console.pages import PART, Page
from controlplane.console.proposing import PROPOSE, PROPOSED, proposal_of, propose
from controlplane.console.resources import kind_of, line_of, resource_url, subject_of
from controlplane.console.several import MAX_DOCUMENTS, CheckedAll, NamesTaken, documents_of, replaced_of
from controlplane.console.starters import STARTERS
from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.resource_types import ResourceType, by_word
from xdscore.schema import may_hold_secrets
from xdscore.schema.completion import completion_of
from xdscore.schema.yaml_out import yaml_of


@dataclass(frozen=True, slots=True)
class Form:
    """The values of the editor's form. `revision`: the number of the revision that the text was made from; 0 for a new
    resource.
    """

    text: str
    revision: int = 0
    message: str = ""
    owner: str = ""


class EditorPage(Page, ABC):
    """The base class of the pages with an editor: for a new resource, and for a stored one."""

    template = "resources/edit.html"
    needs = {"GET": OnSome(Role.EDITOR), "POST": OnSome(Role.EDITOR)}
    kind: ResourceType | None = None
    name: str = ""

    # Not the text: a hidden field must not hold secrets.
    _asked: ClassVar[str] = "resources/edit_source.html"

    @abstractmethod
    def stored(self) -> Form:
        """The values with which the form is shown at first."""

    def subject_checked(self) -> None:
        """Raise NotFound where the URL names no resource that can be edited. Does nothing for a new resource."""

    def post(self, request: HttpRequest, **_path: object) -> HttpResponse:
        """Check the text of the form, save or propose it, or suggest how it may go on, whichever the form asks for."""
        self.subject_checked()
        action = request.POST.get("action", "")
        if action == "complete":
            return self._completed(request.POST.get("before", ""), request.POST.get("after", ""))
        given = _form_of(request)
        chosen = replaced_of(request.POST.getlist("replace"))
        draft = Draft(self.here.key, given.text, self.kind, self.name, self.kept(), chosen)
        part = PART in request.headers
        around: Mapping[str, object] = {}
        try:
            _within_limit(given.text)
            if action == "names":
                return self._named(given, part=part)
            text, problems, around = fill(given.text, request.POST, self._naming(given.text))
            given, draft = replace(given, text=text), replace(draft, text=text)
            if part and action == FIELDS:
                fields = {"fields": render_to_string("resources/fields.html", dict(around), request)}
                return JsonResponse(fields if around.get("form_secret") else {**fields, "text": text})
            if problems:
                action = FIELDS  # nothing is stored while a part of what was filled in is missing
            if action == "instead":  # the text was to be a new resource of this name
                given = replace(given, revision=self.stored().revision)
            if action in ("save", PROPOSE):
                store = self.save if action == "save" else self._propose
                return _led(store(draft, given), part=part)
            return self._answer(given, {**around, "checked": self.checked(draft)}, part=part)
        except ControlPlaneError as error:
            found = {**around, "error": error, **self._instead(error, given)}
            return self._answer(given, found, part=part, status=error.status)

    def kept(self) -> Kept:
        """The contents from which secrets that the text keeps are filled in before those that are stored."""
        return NOTHING_KEPT

    def checked(self, draft: Draft) -> Checked | CheckedAll:
        """What storing the draft would do."""
        return draft_check(draft, owner=_form_of(self.request).owner, actor=self.principal)

    def save(self, draft: Draft, given: Form) -> str:
        """Store the draft as the form says; returns the URL of what came of it. Raises ControlPlaneError."""
        made = draft_save(
            draft,
            expect=expected(given, self.kind),
            message=given.message,
            owner=given.owner or None,
            actor=self.principal,
            request_id=self.request_id,
            consent=self.consent,
        )
        if made.changed:
            return reverse("change", args=[made.change_id])
        messages.info(self.request, "Nothing had to change: what is stored is the same.")
        return self.back()

    def _propose(self, draft: Draft, given: Form) -> str:
        """Put the draft into the change set that the form names; returns the URL of its page."""
        public_id = propose(
            self.request.POST,
            draft_edits(draft, expect=expected(given, self.kind)),
            environment_key=self.here.key,
            message=given.message,
            actor=self.principal,
            request_id=self.request_id,
        )
        messages.success(self.request, PROPOSED)
        return reverse("change-set", args=[public_id])

    @property
    def asks_again(self) -> str:
        """The template of the field that asks for the manifest once more, where it may hold secrets, so that a question
        cannot repeat it in a hidden field; empty where it can.
        """
        return self._asked if self._is_secret(self.request.POST.get("text", "")) else ""

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form as it was sent, to be repeated by a question; without a text that may hold secrets."""
        given = self.request.POST.copy()
        if self.asks_again:
            del given["text"]
        return given

    def _is_secret(self, text: str) -> bool:
        return may_hold_secrets(text) or (self.kind is not None and self.kind.secret)

    def _instead(self, error: ControlPlaneError, given: Form) -> dict[str, object]:
        """The template values of a link to the stored resource whose name a new one would take, and of a button that
        takes the text there. No button where the text may hold secrets.
        """
        if not isinstance(error, NameTaken):
            return {}
        question = (self.here.key, error.kind.word, error.name)
        carried = not (may_hold_secrets(given.text) or error.kind.secret)
        return {
            "taken": error,
            "taken_url": resource_url(*question),
            "instead_url": resource_url(*question, "resource-edit") if carried else "",
        }

    def names_beside(self) -> Collection[tuple[str, str]]:
        """Type and name of what else is written together with the text, and so can be referred to."""
        return ()

    def _naming(self, text: str) -> Naming:
        allowed = self.principal.allowed(Role.VIEWER, self.here.key)
        return Naming(self.here.key, allowed, text, self.names_beside())

    def _named(self, given: Form, *, part: bool) -> HttpResponse:
        """The names that the text can refer to: those with the part of a name that the form asks for."""
        asked = self.request.POST.get("named", "").strip()[:200]
        found: dict[str, object] = {"named": self._naming(given.text).listed(asked), "named_part": asked}
        return self.part("resources/names.html", found) if part else self._answer(given, found, part=False)

    def _completed(self, before: str, after: str) -> HttpResponse:
        """The words that may follow the text `before`, as JSON for the editor's script. `after`: what stands behind
        the cursor.
        """
        try:
            _within_limit(before + after)
        except InputTooLarge:
            return JsonResponse({"word": "", "options": []})
        type_url = self.kind.url if self.kind is not None else ""
        found = completion_of(before, type_url=type_url, names_of=self._naming(before + after).names_of)
        suggestions = found.suggestions if found is not None else ()
        options = [
            {key: value for key, value in asdict(each).items() if key != "plain" or value} for each in suggestions
        ]
        return JsonResponse({"word": found.word if found is not None else "", "options": options})

    def back(self) -> str:
        """The URL of the page from which somebody came who edits this."""
        if self.kind is None:
            return reverse("resources", args=[self.here.key])
        return resource_url(self.here.key, self.kind.word, self.name)

    def _answer(self, given: Form, found: dict[str, object], *, part: bool, status: int = 200) -> HttpResponse:
        if part:
            # The text stays in the open page, so whatever is asked is asked there.
            asks = isinstance(error := found.get("error"), WriteFrozen | WriteUnreviewed) and self.may(error.role)
            around = {"lines": True, "environment": self.environment, "asks_why": asks}
            shown = {**found, **around, **self.told(error), **self._documents(given.text, found)}
            answer = self.part("resources/verdict.html", shown)
            answer.status_code = status
            return answer
        not_shown = self._is_secret(given.text)
        text = self.stored().text if not_shown else given.text
        form = Form(text, given.revision, given.message, given.owner)
        found = {**found, **self._documents(given.text, found)}
        return self.form_page(form, {**found, "not_shown": not_shown, "lines": not not_shown}, status)

    def _documents(self, text: str, found: Mapping[str, object]) -> Mapping[str, object]:
        """The template values of what is said of each resource of a text of several; none of a text of one."""
        checked, error = found.get("checked"), found.get("error")
        try:
            manifests, notes = manifests_of_text(text)
        except ControlPlaneError:
            return {}
        if not 1 < len(manifests) <= MAX_DOCUMENTS:
            return {}
        findings: tuple[Finding, ...] = notes
        shown: dict[str, object] = {"replaced": error.replaced if isinstance(error, NamesTaken) else ()}
        differences: Mapping[tuple[str, str], ResourceDifference] = {}
        if isinstance(checked, CheckedAll):
            findings, differences = (*notes, *checked.findings), checked.differences
            shown |= {"all": checked, "replaced": checked.replaced, "shown": loss_shown(checked.loss, self.principal)}
        elif isinstance(error, ControlPlaneError):
            findings = error.findings
        documents, others = documents_of(manifests, findings, differences)
        return {**shown, "documents": documents, "other_findings": others}

    def form_page(self, form: Form, context: dict[str, object], status: int = 200) -> HttpResponse:
        """The editor's page, its form filled with the values of `form`."""
        shared: dict[str, object] = {
            **self.side(context.get("error")),
            "form": form,
            "kind": self.kind,
            "name": self.name,
            "back_url": self.back(),
        }
        if "forms" not in context:
            shared |= form_values(form.text, self._naming(form.text))
        return self.page({**shared, **context}, status=status)

    def told(self, error: object) -> Mapping[str, object]:  # noqa: ARG002 - for pages that say more
        """The template values of what the verdict says beside what is wrong (`error`; None for nothing)."""
        return {}

    def side(self, error: object) -> Mapping[str, object]:  # noqa: ARG002 - for pages that say more
        """The template values of where the text can go beside its own place: into a change set."""
        chosen = self.request.GET.get("set", "")[:64]
        return {"proposal": proposal_of(self.here.key, self.request.POST, chosen=chosen), "chosen_set": chosen}


class NewResourcePage(EditorPage):
    """The page to create a resource, whose type and name stand in the text."""

    def stored(self) -> Form:
        """A starter text for the type in the URL, with a name that no resource of the environment has."""
        starter = STARTERS.get(self.request.GET.get("type", ""), STARTERS["cluster"])
        there = resource_list(environment_key=self.here.key, kind=by_word[starter.word])
        return Form(starter.free(lambda names: set(there.filter(name__in=names).values_list("name", flat=True))))

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The editor's page with a starter text."""
        return self.form_page(self.stored(), self._types())

    def form_page(self, form: Form, context: dict[str, object], status: int = 200) -> HttpResponse:
        """The editor's page, its form filled with the values of `form`, and the types for which there is a starter
        text.
        """
        return super().form_page(form, {**self._types(), **context}, status)

    def _types(self) -> dict[str, object]:
        chosen = self.request.GET.get("type", "cluster")
        return {"starters": [by_word[word] for word in STARTERS], "chosen": chosen}


class StoredEditor(EditorPage, ABC):
    """The base class of the pages that edit a resource whose type and name the URL has."""

    def setup(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """Read the resource's type and name from the URL."""
        super().setup(request, *args, **kwargs)
        self.kind, self.name = kind_of(request), request.GET.get("name", "")

    def subject_checked(self) -> None:
        """Raise NotFound unless the URL has a type and a name that a resource can have."""
        subject_of(self.request)


class ResourceEditPage(StoredEditor):
    """The page to edit a stored resource."""

    def stored(self) -> Form:
        """The manifest, owner and revision of the stored resource, for the form. Raises NotFound."""
        kind, name = subject_of(self.request)
        write_check(self.principal, self.here.key, (Role.EDITOR,), writes={(kind.word, name): None})
        content = resource_get(environment_key=self.here.key, kind=kind, name=name)
        if kind.secret:
            secrets_read_record(
                environment_key=self.here.key, names=[self.name], actor=self.principal, request_id=self.request_id
            )
        return Form(yaml_of(manifest_of(content)), content.revision, "", content.owner)

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The editor's page with the manifest of the stored resource."""
        return self.form_page(self.stored(), {})

    def form_page(self, form: Form, context: dict[str, object], status: int = 200) -> HttpResponse:
        """The editor's page, its form filled with the values of `form`, and the status of the stored resource."""
        kind, name = subject_of(self.request)
        return super().form_page(form, {"line": line_of(self.here.key, kind, name), **context}, status)


def _form_of(request: HttpRequest) -> Form:
    revision = request.POST.get("revision", "")
    return Form(
        text=request.POST.get("text", "").replace("\r\n", "\n"),
        revision=int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 10 else 0,
        message=request.POST.get("message", "").strip()[:1_000],
        owner=request.POST.get("owner", "").strip()[:150],
    )


def expected(given: Form, kind: ResourceType | None) -> Expectation:
    """The condition under which the form stores its text: what it was made from is still there. `kind`: None for a new
    resource.
    """
    return Existing.ABSENT if kind is None else frozenset({given.revision})


def _within_limit(text: str) -> None:
    limits: Limits = settings.PARLEY.limits
    if len(text) > limits.body_bytes:
        raise InputTooLarge(
            f"The text has {len(text):,} characters; the editor takes {limits.body_bytes:,}. Nothing was changed."
        )


def _led(url: str, *, part: bool) -> HttpResponse:
    """Redirect to the page of the result. For a script (`part`), which cannot be redirected, answer the URL, to which
    it goes.
    """
    return HttpResponse(status=201, headers={"Location": url}) if part else redirect(url)


urlpatterns = [
    path("e/<str:environment_key>/resources/new", NewResourcePage.as_view(), name="resource-new"),
    path("e/<str:environment_key>/resource/edit", ResourceEditPage.as_view(), name="resource-edit"),
]

"""The editor: a text, what is wrong with it, what storing it would change, and storing it.

Works as a plain form; with scripts the same addresses answer parts of the page while somebody types. A text that may
hold secrets is never sent back.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from controlplane.accounts.principal import Role
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.selectors import resource_get, resource_list
from controlplane.catalog.services import secrets_read_record
from controlplane.catalog.values import Existing, Expectation
from controlplane.common.errors import ControlPlaneError, InputTooLarge
from controlplane.console.drafts import Draft, NameTaken, draft_check, draft_save
from controlplane.console.pages import PART, Page
from controlplane.console.resources import kind_of, line_of, resource_url, subject_of
from controlplane.console.starters import STARTERS
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
    needs = {"GET": Role.EDITOR, "POST": Role.EDITOR}
    kind: ResourceType | None = None
    name: str = ""

    @abstractmethod
    def stored(self) -> Form:
        """The values with which the form is shown at first."""

    def subject_checked(self) -> None:
        """Raise NotFound where the URL names no resource that can be edited. Does nothing for a new resource."""

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Check the text of the form, save it, or suggest how it may go on, whichever the form asks for."""
        self.subject_checked()
        if request.POST.get("action") == "complete":
            return self._completed(request.POST.get("before", ""))
        given = _form_of(request)
        draft = Draft(environment_key, given.text, self.kind, self.name)
        saving = request.POST.get("action") == "save"
        part = PART in request.headers
        try:
            _within_limit(given.text)
            if request.POST.get("action") == "instead":  # the text was to be a new resource of this name
                given = replace(given, revision=self.stored().revision)
            if not saving:
                return self._answer(given, {"checked": draft_check(draft)}, part=part)
            made = draft_save(
                draft,
                expect=_expected(given, self.kind),
                message=given.message,
                owner=given.owner or None,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self._answer(given, {"error": error, **self._instead(error, given)}, part=part, status=error.status)
        if not made.changed:
            messages.info(request, "Nothing had to change: what is stored is the same.")
            return _led(self._back(environment_key), part=part)
        return _led(reverse("change", args=[made.change_id]), part=part)

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

    def _completed(self, before: str) -> HttpResponse:
        """The words that may follow the text `before`, as JSON for the editor's script."""
        try:
            _within_limit(before)
        except InputTooLarge:
            return JsonResponse({"word": "", "options": []})
        found = completion_of(before, type_url=self.kind.url if self.kind is not None else "")
        suggestions = found.suggestions if found is not None else ()
        options = [{"label": each.label, "kind": each.kind, "detail": each.detail} for each in suggestions]
        return JsonResponse({"word": found.word if found is not None else "", "options": options})

    def _back(self, environment_key: str) -> str:
        if self.kind is None:
            return reverse("resources", args=[environment_key])
        return resource_url(environment_key, self.kind.word, self.name)

    def _answer(self, given: Form, found: dict[str, object], *, part: bool, status: int = 200) -> HttpResponse:
        if part:
            answer = self.part("resources/verdict.html", {**found, "lines": True, "environment": self.environment})
            answer.status_code = status
            return answer
        not_shown = may_hold_secrets(given.text) or (self.kind is not None and self.kind.secret)
        text = self.stored().text if not_shown else given.text
        form = Form(text, given.revision, given.message, given.owner)
        return self.form_page(form, {**found, "not_shown": not_shown, "lines": not not_shown}, status)

    def form_page(self, form: Form, context: dict[str, object], status: int = 200) -> HttpResponse:
        """The editor's page, its form filled with the values of `form`."""
        shared: dict[str, object] = {
            "form": form,
            "kind": self.kind,
            "name": self.name,
            "back_url": self._back(self.here.key),
        }
        return self.page({**shared, **context}, status=status)


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


class ResourceEditPage(EditorPage):
    """The page to edit a stored resource."""

    def setup(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """Read the resource's type and name from the URL."""
        super().setup(request, *args, **kwargs)
        self.kind, self.name = kind_of(request), request.GET.get("name", "")

    def stored(self) -> Form:
        """The manifest, owner and revision of the stored resource, for the form. Raises NotFound."""
        kind, name = subject_of(self.request)
        content = resource_get(environment_key=self.here.key, kind=kind, name=name)
        if kind.secret:
            secrets_read_record(
                environment_key=self.here.key, names=[self.name], actor=self.principal, request_id=self.request_id
            )
        return Form(yaml_of(manifest_of(content)), content.revision, "", content.owner)

    def subject_checked(self) -> None:
        """Raise NotFound unless the URL has a type and a name that a resource can have."""
        subject_of(self.request)

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


def _expected(given: Form, kind: ResourceType | None) -> Expectation:
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

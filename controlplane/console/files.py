"""Manifests in and out: files that `xdsctl apply`, the API and other environments take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Principal, Role
from controlplane.builder.deep.unasked import NotJudged, not_judged_of
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.guarding import Loss
from controlplane.catalog.manifests import exported_of, manifest_of, manifest_of_parsed
from controlplane.catalog.models import Resource
from controlplane.catalog.reading import NOTHING_CHANGED, parsed_all, placed, puts_of
from controlplane.catalog.rights import OnSome
from controlplane.catalog.selectors import resource_content, resources_named
from controlplane.catalog.services import Terms, change_apply, change_plan, secrets_read_record
from controlplane.catalog.values import ChangeMade, Delete, Edit, EditedResource
from controlplane.common.errors import ControlPlaneError, InputTooLarge, InputUnreadable
from controlplane.console.drafts import manifests_of_text
from controlplane.console.guarding import loss_shown
from controlplane.console.pages import Page
from controlplane.console.proposing import PROPOSE, PROPOSED, proposal_of, propose
from controlplane.console.resources import ResourcesPage, rows_asked
from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.resource_types import SECRET, by_word
from xdscore.schema import ParsedResource, may_hold_secrets
from xdscore.schema.leniency import is_spelling
from xdscore.schema.yaml_out import yaml_of

_MAX_DIFFS: Final = 100
SPELLED: Final = (
    "{count} of what the file says was not in its canonical form, and is kept in that form. Check on the import page "
    "shows each."
)
_ROOM_BYTES: Final = 65_536  # what a form has besides the text


@dataclass(frozen=True, slots=True)
class Planned:
    """What an import would do. `count`: how many resources it would change; `differences`: the first of them;
    `not_judged`: which of them no Envoy has read.
    """

    count: int
    differences: tuple[ResourceDifference, ...]
    findings: tuple[Finding, ...]
    loss: Loss
    not_judged: tuple[NotJudged, ...]


class ExportPage(Page):
    """The download of resources as one YAML file; secrets are left out."""

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The YAML file with the resources that fit the filters in the URL."""
        asked = ResourcesPage.frame.read(request.GET, timezone.now())
        asked.require()
        rows = rows_asked(environment_key, asked, contents=True)
        secrets = list(rows.filter(type=SECRET.word).values_list("name", flat=True))
        if secrets:
            secrets_read_record(
                environment_key=environment_key, names=secrets, actor=self.principal, request_id=self.request_id
            )
        # Not streamed: under ASGI Django would gather what is made piece by piece as well, and warn about it.
        answer = HttpResponse(_manifests(list(rows), environment_key), content_type="application/yaml")
        file = f"{environment_key}-{timezone.now():%Y%m%d-%H%M%S}.yaml"
        answer["Content-Disposition"] = f'attachment; filename="{file}"'
        answer["Cache-Control"] = "private, no-store"
        return answer


class ImportPage(Page):
    """The page to import many manifests as one change. They are checked first, and what the import would do is
    shown.
    """

    template = "resources/import.html"
    needs = {"GET": OnSome(Role.EDITOR), "POST": OnSome(Role.EDITOR)}
    why = "message"
    _text = ""

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page with an empty form."""
        return self.page({"text": "", **self._proposal_fields()})

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Check the manifests and show what the import would do, or store them."""
        given = {key: request.POST.get(key, "").strip()[:1_000] for key in ("message", "owner")}
        prune, strict = (request.POST.get(key) == "1" for key in ("prune", "strict"))
        asked = {**given, "prune": prune, "strict": strict}
        text = ""
        try:
            text = self._text = _text_of(request)
            if request.POST.get("action") == PROPOSE:
                public_id = self._proposed(environment_key, text, given, prune=prune, strict=strict)
                messages.success(request, PROPOSED)
                return redirect("change-set", public_id)
            if request.POST.get("action") != "save":
                planned = _planned(
                    environment_key, text, owner=given["owner"], prune=prune, strict=strict, actor=self.principal
                )
                shown = loss_shown(planned.loss, self.principal)
                return self._answer(text, {**asked, "planned": planned, "shown": shown})
            made = self._applied(environment_key, text, given, prune=prune, strict=strict)
        except ControlPlaneError as error:
            return self._answer(text, {**asked, "error": error}, error.status)
        if not made.changed:
            messages.info(request, "Nothing had to change: everything is stored as it is in the file.")
            return redirect("resources", environment_key)
        return redirect("change", made.change_id)

    def _answer(self, text: str, context: Mapping[str, object], status: int = 200) -> HttpResponse:
        not_shown = may_hold_secrets(text)
        shown = {"text": "" if not_shown else text, "not_shown": not_shown, **self._proposal_fields()}
        return self.page({**context, **shown}, status=status)

    def _applied(
        self, environment_key: str, text: str, given: Mapping[str, str], *, prune: bool, strict: bool
    ) -> ChangeMade:
        manifests, _notes = manifests_of_text(text)
        read = parsed_all(manifests, environment_key=environment_key, strict=strict)
        edits = puts_of(read)
        with placed(manifests, read):
            return change_apply(
                environment_key=environment_key,
                edits=edits,
                actor=self.principal,
                message=given["message"],
                terms=Terms(given["owner"] or None, prune),
                request_id=self.request_id,
                consent=self.consent,
            )

    def _proposed(self, environment_key: str, text: str, given: Mapping[str, str], *, prune: bool, strict: bool) -> str:
        """Put what the import would write and delete into the change set that the form names; returns its id."""
        manifests, _notes = manifests_of_text(text)
        read = parsed_all(manifests, environment_key=environment_key, strict=strict)
        edits: tuple[Edit, ...] = puts_of(read)
        spellings = sum(map(is_spelling, read.findings))
        if spellings:
            messages.warning(self.request, SPELLED.format(count=spellings))
        if prune:
            terms = Terms(given["owner"], prune)
            planned = change_plan(environment_key=environment_key, edits=edits, asker=self.principal, terms=terms)
            gone = [each for each in planned.edits if each.action == "deleted"]
            edits = (*edits, *(Delete(by_word[each.type], each.name) for each in gone))
        return propose(
            self.request.POST,
            edits,
            environment_key=environment_key,
            message=given["message"],
            actor=self.principal,
            request_id=self.request_id,
        )

    def _proposal_fields(self) -> dict[str, object]:
        chosen = self.request.GET.get("set", "")[:64]
        return {"proposal": proposal_of(self.here.key, self.request.POST, chosen=chosen), "chosen_set": chosen}

    @property
    def asks_again(self) -> str:
        """The template of the field that asks for the manifests once more, where they cannot be repeated in a hidden
        field: they may hold secrets, or are too long. Empty where they can.
        """
        limits: Limits = settings.PARLEY.limits
        sent = len(self._text.encode("utf-8", "replace")) + self._text.count("\n")  # a form's lines end with CR LF
        too_long = sent + _ROOM_BYTES > limits.apply_bytes
        return "resources/import_source.html" if too_long or may_hold_secrets(self._text) else ""

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form as it was sent, to be repeated by the question about a loss; an uploaded file becomes
        text.
        """
        given = self.request.POST.copy()
        given["text"] = self._text
        if self.asks_again:
            del given["text"]
        return given


def _planned(environment_key: str, text: str, *, owner: str, prune: bool, strict: bool, actor: Principal) -> Planned:
    manifests, notes = manifests_of_text(text)
    read = parsed_all(manifests, environment_key=environment_key, strict=strict)
    edits = puts_of(read)
    with placed(manifests, read):
        terms = Terms(owner or None, prune)
        plan = change_plan(environment_key=environment_key, edits=edits, asker=actor, terms=terms)
    differences = _differences(environment_key, plan.edits[:_MAX_DIFFS], read.parsed)
    closed = secret_findings(environment_key=environment_key, edits=plan.edits)
    # The plan says again what was said of what it writes.
    findings = dict.fromkeys((*notes, *read.findings, *plan.findings, *closed))
    return Planned(len(plan.edits), differences, tuple(findings), plan.loss, not_judged_of(plan, read.parsed))


def _differences(
    environment_key: str, edits: tuple[EditedResource, ...], parsed: tuple[ParsedResource, ...]
) -> tuple[ResourceDifference, ...]:
    after = {(each.type.word, each.name): manifest_of_parsed(each) for each in parsed}
    keys = [(edit.type, edit.name) for edit in edits]
    before = {key: manifest_of(found) for key, found in resources_named(environment_key=environment_key, keys=keys)}
    return tuple(ResourceDifference(key, before.get(key), after.get(key)) for key in keys)


def _text_of(request: HttpRequest) -> str:
    """The text of the uploaded file or, without one, of the text field. Raises InputTooLarge and InputUnreadable."""
    limits: Limits = settings.PARLEY.limits
    file = request.FILES.get("file")
    if file is None:
        text = request.POST.get("text", "").replace("\r\n", "\n")
        if len(text) > limits.apply_bytes:
            raise InputTooLarge(f"The text has {len(text):,} characters; at most {limits.apply_bytes:,} are allowed.")
        return text
    if (file.size or 0) > limits.apply_bytes:
        raise InputTooLarge(f"The file has {file.size:,} bytes; at most {limits.apply_bytes:,} are allowed.")
    try:
        return bytes(file.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputUnreadable(f"The file is not UTF-8 text. {NOTHING_CHANGED}") from None


def _manifests(rows: list[Resource], environment_key: str) -> Iterator[str]:
    if not rows:
        yield "[]\n"
    for row in rows:
        yield yaml_of([exported_of(resource_content(row, environment_key=environment_key))])


urlpatterns = [
    path("e/<str:environment_key>/import", ImportPage.as_view(), name="import"),
    path("e/<str:environment_key>/export", ExportPage.as_view(), name="export"),
]

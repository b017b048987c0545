"""The page to import manifests: checked first, beside what is stored, with what was left out and why; then stored as
one change, or put into a change set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.reading import NOTHING_CHANGED, ManifestsRead, parsed_all, placed, puts_of
from controlplane.catalog.rights import OnSome
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.values import ChangeMade, Delete, Edit
from controlplane.common.errors import (
    Conflict,
    ControlPlaneError,
    InputInvalid,
    InputTooLarge,
    InputUnreadable,
    PreconditionFailed,
)
from controlplane.console.drafts import manifests_of_text
from controlplane.console.foreseeing import Foreseen, choice_posted, chosen_edits, foreseen_of
from controlplane.console.guarding import loss_shown
from controlplane.console.pages import Page
from controlplane.console.proposing import PROPOSE, PROPOSED, proposal_of, propose
from xdscore.codes import shown
from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.resource_types import by_word
from xdscore.schema import Manifest, may_hold_secrets
from xdscore.schema.leniency import is_spelling

SPELLED: Final = (
    "{count} of what the file says was not in its canonical form, and is kept in that form. Check on the import page "
    "shows each."
)
MAX_FILES: Final = 50
_ROOM_BYTES: Final = 65_536  # what a form has besides the texts
_MAX_NAME_CHARS: Final = 150


@dataclass(frozen=True, slots=True)
class Source:
    """A text with manifests. `name`: that of its file; empty where it was typed."""

    name: str
    text: str

    def place(self, line: int, pointer: str = "") -> str:
        """Where something stands, such as `edge.yaml, line 3`. `line`: 0 where it is not known."""
        where = [shown(self.name), f"line {line}" if line else pointer]
        return ", ".join(filter(None, where))


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that a file holds and an import leaves out: where, and what and why."""

    place: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class SourcesRead:
    """The manifests of some sources: `places` says where each of them stands. `ignored`: what was left out."""

    manifests: tuple[Manifest, ...]
    places: tuple[str, ...]
    ignored: tuple[Ignored, ...]


class ImportPage(Page):
    """The page to import many manifests as one change."""

    template = "resources/import.html"
    needs = {"GET": OnSome(Role.EDITOR), "POST": OnSome(Role.EDITOR)}
    why = "message"
    _sources: tuple[Source, ...] = ()

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page with an empty form."""
        return self._answer({})

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Show what the import would do, store what was chosen of it, or put that into a change set."""
        action = request.POST.get("action")
        try:
            self._sources = _sources_of(request)
            read = sources_read(self._sources)
            parsed = parsed_all(read.manifests, environment_key=environment_key, strict=self._flag("strict"))
            if action not in ("save", PROPOSE):
                return self._foreseen(read, parsed)
            edits = self._edits(read, parsed)
            if action == PROPOSE:
                return self._proposed(parsed, edits)
            made = self._applied(parsed, edits)
        except ControlPlaneError as error:
            return self._refused(error)
        if not made.changed:
            messages.info(request, "Nothing had to change: everything is stored as it is in the file.")
            return redirect("resources", environment_key)
        return redirect("change", made.change_id)

    @property
    def asks_again(self) -> str:
        """The template of the field that asks for the manifests once more, where they cannot be repeated in a hidden
        field: they may hold secrets, or are too long. Empty where they can.
        """
        limits: Limits = settings.PARLEY.limits
        # A form's lines end with CR LF.
        sent = sum(len(each.text.encode("utf-8", "replace")) + each.text.count("\n") for each in self._sources)
        too_long = sent + len(self.request.POST.get("rest", "")) + _ROOM_BYTES > limits.apply_bytes
        return "resources/import_source.html" if too_long or self._is_secret else ""

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form as it was sent, to be repeated by a question; uploaded files become texts."""
        given = self.request.POST.copy()
        for field in ("text", "source"):
            given.pop(field, None)
        if not self.asks_again:
            given.setlist("text", [each.text for each in self._sources])
            if any(each.name for each in self._sources):
                given.setlist("source", [each.name for each in self._sources])
        return given

    @property
    def _is_secret(self) -> bool:
        return any(may_hold_secrets(each.text) for each in self._sources)

    @property
    def _terms(self) -> Terms:
        return Terms(self._typed("owner") or None, self._flag("prune"))

    def _typed(self, field: str) -> str:
        return self.request.POST.get(field, "").strip()[:1_000]

    def _flag(self, field: str) -> bool:
        return self.request.POST.get(field) == "1"

    def _plan(self, read: SourcesRead, parsed: ManifestsRead) -> Foreseen:
        choice = choice_posted(self.request.POST)
        return foreseen_of(
            parsed,
            environment_key=self.here.key,
            places=read.places,
            terms=self._terms,
            left=choice.left if choice is not None else (),
            actor=self.principal,
        )

    def _edits(self, read: SourcesRead, parsed: ManifestsRead) -> tuple[Edit, ...]:
        """The edits for what was chosen, as it was seen; for everything, where the form says nothing of a choice."""
        choice = choice_posted(self.request.POST)
        if choice is not None:
            return chosen_edits(self._plan(read, parsed), choice)
        edits: tuple[Edit, ...] = puts_of(parsed)
        if self._terms.prune:
            planned = change_plan(environment_key=self.here.key, edits=edits, asker=self.principal, terms=self._terms)
            gone = [each for each in planned.edits if each.action == "deleted"]
            edits += tuple(Delete(by_word[each.type], each.name, missing_ok=True) for each in gone)
        return edits

    def _applied(self, parsed: ManifestsRead, edits: Sequence[Edit]) -> ChangeMade:
        sound = ManifestsRead(tuple(each for each in parsed.each if each.parsed is not None))
        with placed([each.manifest for each in sound.each], sound):
            return change_apply(
                environment_key=self.here.key,
                edits=edits,
                actor=self.principal,
                message=self._typed("message"),
                terms=Terms(self._typed("owner") or None),
                request_id=self.request_id,
                consent=self.consent,
            )

    def _proposed(self, parsed: ManifestsRead, edits: Sequence[Edit]) -> HttpResponse:
        """Put the edits into the change set that the form names."""
        public_id = propose(
            self.request.POST,
            edits,
            environment_key=self.here.key,
            message=self._typed("message"),
            actor=self.principal,
            request_id=self.request_id,
        )
        if spellings := sum(map(is_spelling, parsed.findings)):
            messages.warning(self.request, SPELLED.format(count=spellings))
        messages.success(self.request, PROPOSED)
        return redirect("change-set", public_id)

    def _foreseen(
        self, read: SourcesRead, parsed: ManifestsRead, error: ControlPlaneError | None = None
    ) -> HttpResponse:
        foreseen = self._plan(read, parsed)
        status = error.status if error is not None else InputInvalid.status if foreseen.turned_down else 200
        context = {
            "foreseen": foreseen,
            "ignored": read.ignored,
            "shown": loss_shown(foreseen.loss, self.principal),
            "error": error,
        }
        return self._answer(context, status)

    def _refused(self, error: ControlPlaneError) -> HttpResponse:
        """The page that says why nothing was stored; what was chosen is shown again, as things stand now, where
        something moved since it was seen.
        """
        if self._flag("looked") and type(error) in (Conflict, PreconditionFailed):
            try:
                read = sources_read(self._sources)
                strict = self._flag("strict")
                return self._foreseen(
                    read, parsed_all(read.manifests, environment_key=self.here.key, strict=strict), error
                )
            except ControlPlaneError:
                pass  # it cannot even be planned now: the error says why nothing was stored
        return self._answer({"error": error}, error.status)

    def _answer(self, context: Mapping[str, object], status: int = 200) -> HttpResponse:
        limits: Limits = settings.PARLEY.limits
        shown_sources = () if self._is_secret else self._sources
        typed = [each for each in shown_sources if not each.name]
        chosen = self.request.GET.get("set", "")[:64]
        fields = {
            "text": typed[0].text if typed else "",
            "files": [each for each in shown_sources if each.name],
            "not_shown": self._is_secret,
            "sent": [shown(each.name) for each in self._sources if each.name],
            "message": self._typed("message"),
            "owner": self._typed("owner"),
            "prune": self._flag("prune"),
            "strict": self._flag("strict"),
            "proposal": proposal_of(self.here.key, self.request.POST, chosen=chosen),
            "chosen_set": chosen,
            "max_items": limits.apply_items,
            "max_mib": limits.apply_bytes // 1_048_576 or 1,
            "max_files": MAX_FILES,
        }
        return self.page({**fields, **context}, status=status)


def sources_read(sources: Sequence[Source]) -> SourcesRead:
    """The manifests of all sources. Raises InputUnreadable, InputInvalid and InputTooLarge, about all of them at
    once.
    """
    manifests: list[Manifest] = []
    places: list[str] = []
    ignored: list[Ignored] = []
    problems: list[tuple[Source, ControlPlaneError]] = []
    for source in sources:
        try:
            found, notes = manifests_of_text(source.text)
        except ControlPlaneError as error:
            problems.append((source, error))
            continue
        manifests += found
        places += [source.place(line, pointer) for pointer, line in (each.place_of(()) for each in found)]
        ignored += [Ignored(source.place(each.line, each.pointer), each) for each in notes]
    if problems:
        raise _joined(problems)
    limit: int = settings.PARLEY.limits.apply_items
    if len(manifests) > limit:
        raise InputTooLarge(
            f"The files hold {len(manifests):,} resources; at most {limit:,} are allowed. {NOTHING_CHANGED}"
        )
    return SourcesRead(tuple(manifests), tuple(places), tuple(ignored))


def _joined(problems: Sequence[tuple[Source, ControlPlaneError]]) -> ControlPlaneError:
    """One error for those of several sources; each finding says of which."""
    source, error = problems[0]
    if len(problems) == 1 and not source.name:
        return error
    findings = [
        replace(each, detail=f"{shown(source.name) or 'The text'}: {each.detail}")
        for source, one in problems
        for each in one.findings
    ]
    names = ", ".join(shown(source.name) or "the text" for source, _ in problems)
    return type(error)(f"Cannot be imported: {names}. {error.detail}", findings=tuple(findings))


def _sources_of(request: HttpRequest) -> tuple[Source, ...]:
    """What was typed, what was uploaded before, and the files that are uploaded now, which stand in for earlier ones of
    their names. Raises InputTooLarge and InputUnreadable.
    """
    limits: Limits = settings.PARLEY.limits
    files = request.FILES.getlist("file")
    size = sum(file.size or 0 for file in files)
    if size > limits.apply_bytes:
        raise InputTooLarge(f"The files have {size:,} bytes; at most {limits.apply_bytes:,} are allowed.")
    texts, names = request.POST.getlist("text"), request.POST.getlist("source")
    kept = [
        Source(_name(names[number] if number < len(names) else ""), text.replace("\r\n", "\n"))
        for number, text in enumerate(texts)
    ]
    fresh = [_uploaded(file) for file in files]
    replaced = {each.name for each in fresh}
    given = [each for each in kept if each.name not in replaced or not each.name] + fresh
    found = tuple(each for each in given if each.text.strip()) or tuple(given[:1])
    length = sum(len(each.text) for each in found)
    if length > limits.apply_bytes:
        raise InputTooLarge(f"The text has {length:,} characters; at most {limits.apply_bytes:,} are allowed.")
    if len(found) > MAX_FILES:
        raise InputTooLarge(f"{len(found)} files at once; at most {MAX_FILES} are taken. {NOTHING_CHANGED}")
    return found or (Source("", ""),)


def _uploaded(file: "UploadedFile[bytes]") -> Source:
    name = _name(file.name or "file")
    try:
        return Source(name, bytes(file.read()).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputUnreadable(f"The file '{shown(name)}' is not UTF-8 text. {NOTHING_CHANGED}") from None


def _name(text: str) -> str:
    """The name of a file as it is shown and repeated."""
    return "".join(filter(str.isprintable, text))[:_MAX_NAME_CHARS]


urlpatterns = [
    path("e/<str:environment_key>/import", ImportPage.as_view(), name="import"),
]

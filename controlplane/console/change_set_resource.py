"""A resource of a change set in the editor: with the set's content, saved back into the set."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse

from controlplane.catalog.reading import Kept
from controlplane.catalog.review import WriteUnreviewed
from controlplane.catalog.services import secrets_read_record
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.selectors import SetDetail, change_set_kept, change_set_manifest
from controlplane.changesets.services import SetChanges, change_set_edit
from controlplane.changesets.values import SetState
from controlplane.common.errors import Conflict, NotFound
from controlplane.console.change_sets import set_entered
from controlplane.console.drafts import Checked, Draft, draft_check, draft_edits
from controlplane.console.editor import Form, StoredEditor, expected
from controlplane.console.posted import number_of
from controlplane.console.resources import subject_of
from controlplane.console.several import CheckedAll
from controlplane.console.states import look_of, look_of_set
from xdscore.schema.yaml_out import yaml_of


class ChangeSetResourcePage(StoredEditor):
    """The page to edit what a change set writes of one resource."""

    template = "changesets/resource.html"
    needs = {"GET": None, "POST": None}
    detail: SetDetail

    def get(self, request: HttpRequest, change_set_id: UUID) -> HttpResponse:  # noqa: ARG002 - Django's
        """The editor's page with the manifest that the set writes."""
        self._enter(change_set_id)
        return self.form_page(self.stored(), {})

    def post(self, request: HttpRequest, **path: object) -> HttpResponse:
        """Check the text, save it into the set, or suggest how it may go on, whichever the form asks for."""
        self._enter(self.kwargs["change_set_id"])
        return super().post(request, **path)

    def stored(self) -> Form:
        """The manifest in the set, and the revision that it was made from, for the form. Raises NotFound."""
        kind, name = subject_of(self.request)
        entry, manifest = change_set_manifest(public_id=self.detail.view.id, key=(kind.word, name))
        if manifest is None:
            raise NotFound(f"This change set deletes the {kind.word}: there is no text to edit.")
        if kind.secret:
            secrets_read_record(
                environment_key=self.here.key, names=[name], actor=self.principal, request_id=self.request_id
            )
        return Form(yaml_of(manifest), entry.base)

    def kept(self) -> Kept:
        """What the set writes of the resource: secrets that the text keeps are those of the set."""
        kind, name = subject_of(self.request)
        return change_set_kept(public_id=self.detail.view.id, keys=[(kind.word, name)])

    def checked(self, draft: Draft) -> Checked | CheckedAll:
        """What publishing the draft would do. That it needs review is no warning here: it is in a change set."""
        found = draft_check(draft, owner="", actor=self.principal)
        findings = tuple(each for each in found.findings if each.code != WriteUnreviewed.code)
        return replace(found, findings=findings)

    def save(self, draft: Draft, given: Form) -> str:
        """Put the draft into the set, in place of what that has; returns the URL of the set. Raises
        ControlPlaneError.
        """
        changed = change_set_edit(
            public_id=self.detail.view.id,
            changes=SetChanges(adds=draft_edits(draft, expect=expected(given, self.kind))),
            version=number_of(self.request.POST, "version"),
            actor=self.principal,
            request_id=self.request_id,
        )
        said = "It is in the change set, which is a draft." if changed else "Nothing had to change."
        messages.success(self.request, said)
        return self.back()

    def back(self) -> str:
        """The URL of the change set."""
        return reverse("change-set", args=[self.detail.view.id])

    def names_beside(self) -> tuple[tuple[str, str], ...]:
        """Type and name of what the set writes."""
        return tuple((each.type, each.name) for each in self.detail.entries if not each.deletes)

    def told(self, error: object) -> Mapping[str, object]:
        """The template values of what the verdict says: that somebody was faster (`error` is a Conflict)."""
        return self.side(error)

    def side(self, error: object) -> Mapping[str, object]:
        """The template values of what stands beside the text. After a conflict (`error`) the form is about the
        version of now: who sends it once more knows that somebody was faster.
        """
        view, conflict = self.detail.view, isinstance(error, Conflict)
        typed = self.request.POST.get("version", "")
        return {
            "view": view,
            "set_version": view.version if conflict or not typed else typed,
            "conflict": conflict,
            "is_draft": view.state is SetState.DRAFT,
            "stands": look_of(look_of_set(view.state)).label,
        }

    def _enter(self, change_set_id: UUID) -> None:
        """Set the page's change set and environment. Raises NotFound as `set_entered` does, Forbidden where the user
        may not edit it, and Conflict where it is published.
        """
        self.detail = set_entered(self, change_set_id)
        require(self.principal, Act.EDIT, self.here.key)
        if Act.EDIT not in self.detail.acts:
            raise Conflict("This change set is published: what it wrote is edited on the page of the resource.")


urlpatterns = [
    path("change-sets/<uuid:change_set_id>/resource", ChangeSetResourcePage.as_view(), name="change-set-resource"),
]

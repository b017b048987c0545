"""The form of the common fields beside the editor's text: what a request filled in, and the template's values."""

from collections.abc import Mapping
from typing import Final

from django.http import QueryDict

from controlplane.catalog.reading import parsed_all
from controlplane.common.errors import ControlPlaneError
from controlplane.console.drafts import manifests_of_text
from controlplane.console.manifest_form import (
    MAX_CHARS,
    Applied,
    Field,
    Filled,
    ManifestForm,
    fields_apply,
    forms_of,
)
from controlplane.console.naming import LISTED, Naming
from xdscore.findings import Finding
from xdscore.schema import may_hold_secrets
from xdscore.schema.sensitive import names_secrets
from xdscore.schema.text_edit import trees_of

FIELDS: Final = "fields"
"""The action of the editor's form that writes its fields into its text."""
_MAX_VALUE: Final = 2_000


def fill(text: str, post: QueryDict, naming: Naming) -> tuple[str, bool, Mapping[str, object]]:
    """The text with what the form's fields were changed to, whether something is missing in it, and the template values
    of the form for that text.
    """
    if _is_secret(text):
        return text, False, form_values(text, naming)
    filled = _filled(post)
    applied = fields_apply(text, filled)
    asked = post.get("action") == FIELDS or bool(filled.row) or bool(applied.problems)
    shown = {**form_values(applied.text, naming, filled=filled, applied=applied), "form_open": asked}
    return applied.text, bool(applied.problems), shown


def _filled(post: QueryDict) -> Filled:
    return Filled(_values(post, "field:"), _values(post, "was:"), post.get("row", "")[:_MAX_VALUE])


def _values(post: QueryDict, lead: str) -> dict[str, str]:
    return {key.removeprefix(lead): str(post[key])[:_MAX_VALUE] for key in post if key.startswith(lead)}


def form_values(
    text: str, naming: Naming, *, filled: Filled | None = None, applied: Applied | None = None
) -> Mapping[str, object]:
    """The template values of the form for a text. At most three queries for names, and two for the findings."""
    if _is_secret(text):
        return {"forms": (), "form_secret": True}
    forms = forms_of(text, findings=_findings(text, naming.environment_key), filled=filled, applied=applied)
    kinds = {field.common.names for field in _fields(forms) if field.common.names is not None}
    return {
        "forms": forms,
        "form_problem": applied.problems.get("", "") if applied is not None else "",
        "form_names": {kind.word: naming.names_of(kind, "", LISTED) for kind in kinds},
    }


def _is_secret(text: str) -> bool:
    """Whether a text may hold secrets: by its members where it can be read, by its words where not."""
    trees = trees_of(text) if len(text) <= MAX_CHARS else {}
    return any(map(names_secrets, trees.values())) if trees else may_hold_secrets(text)


def _fields(forms: tuple[ManifestForm, ...]) -> list[Field]:
    return [field for each in forms for part in each.parts for field in part.fields]


def _findings(text: str, environment_key: str) -> tuple[Finding, ...]:
    try:
        manifests, _notes = manifests_of_text(text)
        return parsed_all(manifests, environment_key=environment_key).findings
    except ControlPlaneError as error:
        return error.findings

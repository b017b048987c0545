"""The conditions that a write sets on what is stored (If-Match, If-None-Match), looked at again once the environment is
locked (RFC 9110 section 13.1; texts.md section 4).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.catalog.marking import Mark
from controlplane.catalog.models import Resource
from controlplane.catalog.values import Delete, Edit, Existing, Expectation, edit_key
from controlplane.common.errors import NotFound, OperatorError, PreconditionFailed
from xdscore.findings import Finding, Severity

Key = tuple[str, str]
_MAX_SHOWN: Final = 200  # as many as a problem document lists


def is_present(resource: Resource | None) -> bool:
    """Whether the resource exists now. A deleted one has a row, too, which keeps counting its revisions."""
    return resource is not None and not resource.deleted


def expectations_check(edits: Sequence[Edit | Mark], current: Mapping[Key, Resource]) -> None:
    """Check the condition of each edit. Raises PreconditionFailed, and NotFound where all that is wrong is that a
    resource to delete is not there; with a finding for each where there are several.
    """
    wrong = [problem for edit in edits if (problem := _problem(edit, current.get(_key_of(edit)))) is not None]
    if not wrong:
        return
    if len(edits) == 1:
        raise wrong[0][1]
    findings = tuple(
        Finding(error.code, Severity.ERROR, error.detail.removesuffix(" Nothing was changed.")).about(*key)
        for key, error in wrong[:_MAX_SHOWN]
    )
    said = f"{len(wrong)} of {len(edits)} resources are not as the request expects them, such as: {wrong[0][1].detail}"
    if all(isinstance(error, NotFound) for _, error in wrong):
        raise NotFound(said, findings=findings)
    raise PreconditionFailed(said, etag="", findings=findings)


def _key_of(edit: Edit | Mark) -> Key:
    return edit.key if isinstance(edit, Mark) else edit_key(edit)


def _problem(edit: Edit | Mark, resource: Resource | None) -> tuple[Key, OperatorError] | None:
    """What is wrong with the stored resource, for this edit; None where nothing is."""
    word, name = key = _key_of(edit)
    present = is_present(resource)
    number = resource.counter if resource is not None and present else 0
    if isinstance(edit, Delete) and not edit.missing_ok and not present and edit.expect is Existing.ANY:
        return key, NotFound(f"There is no {word} '{name}' to delete.")
    if _holds(edit.expect, number, present):
        return None
    now = f"is at revision r{number}" if present else "does not exist"
    detail = f"The {word} '{name}' {now}; the request expected otherwise. Nothing was changed."
    return key, PreconditionFailed(detail, etag=f'"r{number}"' if present else "")


def _holds(expect: Expectation, number: int, present: bool) -> bool:
    match expect:
        case Existing.ANY:
            return True
        case Existing.ABSENT:
            return not present
        case Existing.PRESENT:
            return present
        case _:
            return present and number in expect

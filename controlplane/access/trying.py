"""Tries the saved cases of an environment against rules that are not in force yet."""

from collections.abc import Callable

from controlplane.access.review import cases_broken
from controlplane.access.selectors import case_list, case_state
from controlplane.common.errors import Conflict
from xdscore.access import AccessTable
from xdscore.findings import Finding, has_errors


def cases_tried(
    before: AccessTable, after: AccessTable, environment_key: str, called: Callable[[int], str] = str
) -> tuple[Finding, ...]:
    """A finding for each saved case that fails under the rules `after`, as `cases_broken` has them."""
    saved = [case_state(row) for row in case_list(environment_key=environment_key)]
    return cases_broken(before, after, environment_key, saved, called)


def broken_refuse(
    before: AccessTable, after: AccessTable, environment_key: str, called: Callable[[int], str] = str
) -> tuple[Finding, ...]:
    """Try the saved cases; returns the findings about those that fail and do not block. Raises Conflict, with all
    findings, where a blocking case would break.
    """
    findings = cases_tried(before, after, environment_key, called)
    if has_errors(findings):
        raise Conflict("A blocking access case would not be kept any more. Nothing was changed.", findings=findings)
    return findings

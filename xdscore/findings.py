"""Findings: what is wrong, or worth knowing, about something an operator wrote. Returned, never raised; all of them at
once.
"""

from dataclasses import dataclass, replace
from enum import Enum


class Severity(Enum):
    """How much a finding matters: an ERROR stops the resource it is about, a WARNING is shown, a NOTE is shown to
    readers who ask for more.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found in an input. `pointer` is an RFC 6901 JSON pointer into the input; `line` and `column` count from
    1 and are 0 when unknown.
    """

    code: str
    severity: Severity
    detail: str
    hint: str = ""
    pointer: str = ""
    line: int = 0
    column: int = 0
    resource_type: str = ""
    resource_name: str = ""

    def about(self, resource_type: str, resource_name: str) -> "Finding":
        """A copy of this finding that names this resource."""
        return replace(self, resource_type=resource_type, resource_name=resource_name)


def has_errors(findings: tuple[Finding, ...]) -> bool:
    """Whether any of the findings is an ERROR, which stops the resource it is about."""
    return any(finding.severity is Severity.ERROR for finding in findings)

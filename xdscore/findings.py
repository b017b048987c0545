"""Findings: what is wrong, or worth knowing, about something an operator wrote. Returned, never raised; all of them at
once.
"""

from dataclasses import dataclass, replace
from enum import Enum


class Severity(Enum):
    """How much a finding matters: an ERROR stops what it is about, a WARNING is shown, a NOTE is for whoever looks
    closer.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `pointer` is an RFC 6901 JSON pointer into the input; `line` and `column` count from 1, 0 when
    unknown.
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
        """The same finding, said of this resource."""
        return replace(self, resource_type=resource_type, resource_name=resource_name)


def has_errors(findings: tuple[Finding, ...]) -> bool:
    """Whether any finding stops what it is about."""
    return any(finding.severity is Severity.ERROR for finding in findings)

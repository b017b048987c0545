"""What a write does to cases, as findings, all at once. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from controlplane.routecases.values import CaseRun, End
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding, Severity

NOT_KEPT: Final = CATALOGUE["XDS3091"]
FAILS: Final = CATALOGUE["XDS3092"]
MENDED: Final = CATALOGUE["XDS3093"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A case before a write, and what the write makes of it."""

    before: End
    run: CaseRun

    @property
    def held(self) -> bool:
        """Whether the case held before the write."""
        return self.run.draft.expect.kept_by(self.before)

    @property
    def breaks(self) -> bool:
        """Whether the write breaks the case: it held, and would not."""
        return self.held and not self.run.holds

    @property
    def refuses(self) -> bool:
        """Whether the write is refused because of this case."""
        return self.breaks and self.run.draft.blocking


def judged_findings(judged: Iterable[Judged]) -> tuple[Finding, ...]:
    """A finding for each case that fails after a write, or comes to hold by it; those that refuse it first. One that
    breaks without being blocking is a warning.
    """
    found = [finding for each in judged for finding in _finding(each)]
    return tuple(sorted(found, key=lambda each: _ORDER[each.severity]))


_ORDER: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def _finding(judged: Judged) -> Iterable[Finding]:
    draft, after = judged.run.draft, judged.run.end
    values = {"case": draft.name, "request": draft.asks, "after": after.said}
    more = {"before": judged.before.said, "expected": draft.expect.said}
    if judged.breaks:
        finding = NOT_KEPT.finding("", **values, **more)
        yield finding if judged.refuses else replace(finding, severity=Severity.WARNING)
    elif not judged.run.holds:
        yield FAILS.finding("", **values, **more)
    elif not judged.held:
        yield MENDED.finding("", **values)

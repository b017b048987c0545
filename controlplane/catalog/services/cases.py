"""Has every write judged by the route cases of its environment, before it is stored (truth.md Q4).

Cases are known by a room above this one (`controlplane.routecases`), which gives its judge here when it is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.guarding import CasesBroken, Consent
from controlplane.catalog.models import Change, Environment
from controlplane.common.errors import Forbidden
from controlplane.journal.services import audit_record
from xdscore.access import AccessTable, Effect
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding, Severity
from xdscore.snapshot import EntryKey

CASES_BROKEN: Final = CATALOGUE[CasesBroken.code]
_MAX_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What a write makes of what cases are judged by.

    `puts`: the content of each resource that is written, a serialized Any; None for a deletion. `existed`: those of
    them that there were before. `tables`: the access rules before and after the write; None where they stay. `default`:
    the environment's default effect after it; None where it stays.
    """

    environment: Environment
    puts: Mapping[EntryKey, bytes | None] = field(default_factory=lambda: MappingProxyType({}))
    existed: frozenset[EntryKey] = frozenset()
    tables: tuple[AccessTable, AccessTable] | None = None
    default: Effect | None = None

    @property
    def of_access(self) -> bool:
        """Whether the write is about who may read what."""
        return self.tables is not None or self.default is not None


def _nothing(_change: Change) -> None:
    return None


@dataclass(frozen=True, slots=True)
class CasesJudged:
    """How the cases of an environment stand after a write. `findings`: about those that fail or come to hold; an ERROR
    for each of `broken`, the names of blocking cases that would not hold any more. `store`: keeps how they stand, with
    the change that made them so.
    """

    findings: tuple[Finding, ...] = ()
    broken: tuple[str, ...] = ()
    store: Callable[[Change], None] = _nothing


CaseJudge = Callable[[Rewriting], CasesJudged]
"""A function that says how the cases of an environment would stand after a write."""

NOTHING_JUDGED: Final = CasesJudged()
_judges: list[CaseJudge] = []


def case_judge_register(judge: CaseJudge) -> None:
    """Let the function `judge` tell how cases stand after any write from now on."""
    _judges[:] = [judge]


def cases_foresee(rewriting: Rewriting, *, told: bool = True) -> CasesJudged:
    """How the cases of the environment would stand after a write; refuses nothing. For dry runs. `told`: the writer may
    read the whole environment. Raises RuntimeError where no judge is registered.
    """
    if not rewriting.puts and not rewriting.of_access:
        return NOTHING_JUDGED
    if not _judges:
        raise RuntimeError("a write, and nobody who can judge it by route cases")
    judged = _judges[0](rewriting)
    return judged if told else replace(judged, findings=_in_numbers(judged))


def cases_judged(
    rewriting: Rewriting, consent: Consent, actor: Principal, *, dry_run: bool, request_id: str = ""
) -> CasesJudged:
    """What `cases_accept` returns and raises or, for a dry run, what `cases_foresee` returns."""
    return cases_foresee(rewriting) if dry_run else cases_accept(rewriting, consent, actor, request_id=request_id)


def cases_accept(
    rewriting: Rewriting, consent: Consent, actor: Principal, *, told: bool = True, request_id: str = ""
) -> CasesJudged:
    """How the cases of the environment stand after a write. Raises CasesBroken where blocking cases break and `consent`
    does not accept that, and Forbidden where it does and the writer may not write cases.

    Called within the transaction of the write, with the environment locked, so that no other write comes in between.
    """
    judged = cases_foresee(rewriting, told=told)
    if not judged.broken:
        return judged
    environment, count = rewriting.environment, len(judged.broken)
    if consent.asked:
        if consent.accept_cases < count:
            raise CasesBroken(count, judged.findings)
        if not actor.may(Role.EDITOR, environment.key):
            raise Forbidden(
                f"To break route cases needs the role editor in environment '{environment.key}' as a whole; "
                f"{actor.name} does not have it. Nothing was changed."
            )
    audit_record(
        actor=actor,
        verb="route_cases.broken",
        subject=environment.key,
        environment=environment.key,
        request_id=request_id,
        detail={"cases": list(judged.broken[:_MAX_NAMED]), "count": count, "accepted": consent.asked},
    )
    return replace(judged, findings=tuple(map(_warned, judged.findings)))


def _warned(finding: Finding) -> Finding:
    return replace(finding, severity=Severity.WARNING) if finding.severity is Severity.ERROR else finding


def _in_numbers(judged: CasesJudged) -> tuple[Finding, ...]:
    """The findings for who may not read the whole environment: how many cases break."""
    return (CASES_BROKEN.finding("", count=len(judged.broken)),) if judged.broken else ()

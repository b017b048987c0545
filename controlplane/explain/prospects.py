"""What publishing a change set would do now: what is wrong with it, whom it would reach, and what they would lose."""

from dataclasses import dataclass

from controlplane.access.selectors import secret_findings
from controlplane.catalog.guarding import Loss
from controlplane.changesets.selectors import SetDetail, change_set_plan
from controlplane.changesets.values import SetState
from controlplane.explain.impact import Edited, Impact
from controlplane.explain.reach import impact_read
from xdscore.findings import Finding


@dataclass(frozen=True, slots=True)
class Prospect:
    """What publishing a change set would do now. `impact`, of what it writes on the clients that ask for it, and `loss`
    are None where it could not be published at all, which `findings` tell, and for a set that was published.
    """

    findings: tuple[Finding, ...] = ()
    impact: Impact | None = None
    loss: Loss | None = None


def prospect_of(detail: SetDetail) -> Prospect:
    """What publishing this change set would do now. It parses all that the set writes, and asks of each connected
    client what it asks for. Raises NotFound where the set was deleted.
    """
    view = detail.view
    if view.state is SetState.PUBLISHED:
        return Prospect()
    planned, findings = change_set_plan(public_id=view.id, wishes=detail.wishes)
    if planned is None:
        return Prospect(findings)
    edited = [Edited(each.type, each.name, each.action == "deleted") for each in planned.edits]
    return Prospect(
        (*findings, *secret_findings(environment_key=view.environment, edits=planned.edits)),
        impact_read(environment_key=view.environment, edits=edited, table=planned.table),
        planned.loss,
    )

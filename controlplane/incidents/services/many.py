"""Takes many revisions out of service, or puts them back, by one change: with the incidents that are about them."""

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.services import Opening, quarantines_open, quarantines_release
from controlplane.catalog.values import ChangeMade
from controlplane.incidents.models import Incident
from controlplane.incidents.services.answering import refused_by
from controlplane.incidents.values import UNRESOLVED, IncidentCause

Revision = tuple[str, str, int]
"""The word of a type, a name, and the number of a revision."""


def revisions_quarantine(
    *,
    environment_key: str,
    revisions: Sequence[Revision],
    reason: str,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Put these revisions into quarantine; does nothing with those that are in it. Raises what `quarantines_open`
    raises.
    """
    incidents = _incidents(environment_key, revisions)
    made = quarantines_open(
        environment_key=environment_key,
        openings=[
            Opening(*each, str(incident.public_id), refused_by(incident))
            if (incident := incidents.get(each)) is not None
            else Opening(*each)
            for each in revisions
        ],
        cause=QuarantineCause.OPERATOR,
        reason=reason,
        actor=actor,
        request_id=request_id,
        consent=consent,
    )
    for (_, _, number), incident in incidents.items():
        Incident.objects.filter(pk=incident.pk).update(quarantined_revision=number)
    return made


def revisions_release(
    *, environment_key: str, revisions: Sequence[Revision], reason: str, actor: Principal, request_id: str = ""
) -> ChangeMade:
    """Release these revisions from quarantine although clients refuse them; they are not quarantined automatically
    again (U21). Does nothing with those that are not in quarantine. Raises NotFound.
    """
    # First, so that no digest can come between the release and the mark; every incident about it, whatever the fault.
    for word, name, number in revisions:
        _unresolved(environment_key).filter(type=word, name=name, revision=number).update(forced_revision=number)
    return quarantines_release(
        environment_key=environment_key, revisions=revisions, reason=reason, actor=actor, request_id=request_id
    )


def _unresolved(environment_key: str) -> QuerySet[Incident]:
    return Incident.objects.filter(
        environment__key=environment_key,
        cause=IncidentCause.NACK.value,
        state__in=[state.value for state in UNRESOLVED],
    )


def _incidents(environment_key: str, revisions: Sequence[Revision]) -> Mapping[Revision, Incident]:
    """The newest unresolved incident about each of these revisions, for those that have one."""
    rows = _unresolved(environment_key).filter(name__in={name for _, name, _ in revisions})
    wanted = set(revisions)
    found = {(row.type, row.name, row.revision): row for row in rows.select_related("environment").order_by("pk")}
    return {key: row for key, row in found.items() if key in wanted}

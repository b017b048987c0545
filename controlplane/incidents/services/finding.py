"""Finds the incident that a refusal belongs to: one fault is one incident for people, whoever says it and how."""

from collections.abc import Iterable

from django.db.models import QuerySet

from controlplane.catalog.selectors import EnvironmentState
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.models import Incident
from controlplane.incidents.services.reading import Refusal
from controlplane.incidents.values import UNRESOLVED, IncidentCause

PROVEN = tuple(each.value for each in Confidence if each.proven)
_AT_ONCE = 1_000


class Finder:
    """Looks incidents up for one batch of refusals, within its transaction.

    All existing fingerprints are read at once: of a flood of words most are new, and none of them is asked for alone.
    """

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        wanted = sorted({refusal.fingerprint for refusal in refusals})
        self._known: set[str] = set()
        for start in range(0, len(wanted), _AT_ONCE):
            rows = Incident.objects.filter(fingerprint__in=wanted[start : start + _AT_ONCE])
            self._known.update(rows.values_list("fingerprint", flat=True))

    def incident_of(self, environment: EnvironmentState, refusal: Refusal) -> Incident | None:
        """The incident that a refusal continues; None where a new one is to be opened. Locked until the transaction
        ends.

        The revision that is refused comes first: what is proven goes on in whatever unresolved incident is about it,
        and what only words tell, in one where it is proven. Then the same words about another revision of the resource:
        who mends it in vain is at the same fault (texts.md 9.5 and 9.8).
        """
        rows = incidents_locked(environment)
        found = None
        if refusal.fingerprint in self._known:
            found = rows.filter(algorithm=refusal.algorithm, fingerprint=refusal.fingerprint).first()
        if not refusal.name or (found is not None and found.state in UNRESOLVED):
            return found
        of_name = rows.filter(type=refusal.word, name=refusal.name)
        of_revision = of_name.filter(revision=refusal.revision, state__in=UNRESOLVED).order_by("pk")
        if not refusal.confidence.proven:
            return of_revision.filter(confidence__in=PROVEN).first() or found
        same_words = of_name.filter(normalised=refusal.normalised, family=refusal.family.value).order_by("-pk")
        return found or of_revision.first() or same_words.first()

    def made(self, incident: Incident) -> None:
        """Note the fingerprint of an incident that was opened or changed, so that later refusals find it."""
        self._known.add(incident.fingerprint)


def same_fault(environment: EnvironmentState, incident: Incident) -> QuerySet[Incident]:
    """The other unresolved incidents about the same revision, which only the words of clients told apart."""
    rows = incidents_locked(environment).filter(state__in=UNRESOLVED).exclude(pk=incident.pk)
    return rows.filter(type=incident.type, name=incident.name, revision=incident.revision).exclude(
        confidence__in=PROVEN
    )


def incidents_locked(environment: EnvironmentState) -> QuerySet[Incident]:
    """The rows of an environment's refusals, each locked when it is read."""
    rows = Incident.objects.select_for_update(of=("self",)).select_related("environment")
    return rows.filter(environment=environment.id, cause=IncidentCause.NACK.value)

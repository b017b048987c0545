"""Keeps to the bounds of incidents: who may open one more, what makes room for it, and where the rest goes.

The rest is in shared incidents, one of each type and family, which say which resources it is about.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Case, Count, Q, QuerySet, Value, When

from controlplane.catalog.selectors import EnvironmentState
from controlplane.clients.clock import database_now
from controlplane.clients.selectors import NackView
from controlplane.incidents.attribution import NamedVersion
from controlplane.incidents.fingerprint import fingerprint
from controlplane.incidents.models import Incident
from controlplane.incidents.services.finding import PROVEN
from controlplane.incidents.services.muting import UNMUTED
from controlplane.incidents.services.reading import Refusal
from controlplane.incidents.services.resolution import Resolution, resolution_record
from controlplane.incidents.shares import Admission, admissions
from controlplane.incidents.values import CROWDED, UNRESOLVED, IncidentCause, IncidentState
from controlplane.incidents.verdict import Outcome
from xdscore.client_kinds import ClientFamily

# So many names one shared incident keeps, the newest: what is proven about more resources has its own incidents.
MAX_CROWDED_NAMES = 1_000
# For so long whoever opened one has spent it, resolved or not.
_SPENT_FOR = timedelta(hours=1)
MADE_ROOM = (
    "there were more unresolved incidents than are told apart, and one identity alone had said this: its resource is "
    "named in the incident that such share"
)

Taken = Sequence[tuple[NackView, int]]
"""NACKs that nobody has digested before, each with the number of the revision it is about."""


@dataclass(slots=True)
class Crowd:
    """The NACKs that are to be counted in a shared incident, because no further incident may be opened for them.

    `taken`: the NACKs, each with the number of the refused revision; `moments`: when they came.
    `contents`: the resources that they are about, newest last.
    """

    environment: EnvironmentState
    word: str
    family: ClientFamily
    taken: list[tuple[NackView, int]] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)
    contents: dict[NamedVersion, None] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The fingerprint by which the shared incident is found."""
        return fingerprint(word=self.word, name="", family=self.family, normalised=CROWDED)

    def suspects(self, before: Iterable[Sequence[str]]) -> list[list[str]]:
        """The suspects of the shared incident: those of this crowd, newest first, and then those that it had
        `before`.
        """
        newest = dict.fromkeys((*reversed(self.contents), *((name, version) for name, version in before)))
        return [list(content) for content in newest][:MAX_CROWDED_NAMES]


class Crowds:
    """Keeps count, during one transaction, of how many incidents each party may still open in the environments of a
    batch of NACKs, and collects the NACKs for which none may be opened.

    `made_room`: the incidents that were resolved so that others could be opened.
    """

    def __init__(self) -> None:
        self._held: dict[int, Counter[str]] = {}
        self._spent: dict[int, Counter[str]] = {}
        self._crowds: dict[tuple[int, str, ClientFamily], Crowd] = {}
        self.made_room: set[int] = set()

    @property
    def crowds(self) -> tuple[Crowd, ...]:
        """The collected NACKs, in one crowd for each shared incident."""
        return tuple(self._crowds.values())

    def admit(self, environment: EnvironmentState, refusal: Refusal, taken: Taken) -> str | None:
        """Whether one more incident may be opened for this refusal: the key of whoever is accountable for it; None
        where it may not and the refusal is to be added to the shared incident. `taken`: its NACKs.
        """
        limits = settings.PARLEY.limits
        held = self._of(environment)
        spent = self._spent[environment.id]
        for admission in admissions(
            held=held,
            spent=spent,
            whose=[nack.accountable for nack, _ in taken],
            proven=refusal.confidence.proven,
            per_identity=limits.incidents_per_identity,
            in_all=limits.incidents_per_environment,
        ):
            if self._has_room(environment, admission):
                held[admission.accountable] += 1
                spent[admission.accountable] += 1
                return admission.accountable
        return None

    def closed(self, environment: EnvironmentState, incident: Incident) -> None:
        """Count a resolved incident no longer against whoever is accountable for opening it."""
        self._of(environment)[incident.opened_by] -= 1

    def add(self, environment: EnvironmentState, refusal: Refusal, taken: Taken) -> None:
        """Collect a refusal, with its NACKs, for the shared incident."""
        crowd = self._crowd(environment, refusal.word, refusal.family)
        crowd.taken.extend(taken)
        crowd.moments.extend(nack.at for nack, _ in taken)
        named = ((refusal.name, refusal.version),) if refusal.name else refusal.suspects
        for content in named:
            crowd.contents.pop(content, None)
            crowd.contents[content] = None

    def _crowd(self, environment: EnvironmentState, word: str, family: ClientFamily) -> Crowd:
        return self._crowds.setdefault((environment.id, word, family), Crowd(environment, word, family))

    def _of(self, environment: EnvironmentState) -> Counter[str]:
        if environment.id not in self._held:
            unresolved = Q(state__in=UNRESOLVED)
            lately = Q(first_at__gte=database_now() - _SPENT_FOR)
            rows = _refusals(environment).filter(unresolved | lately).order_by().values_list("opened_by")
            counted = rows.annotate(held=Count("pk", filter=unresolved), spent=Count("pk"))
            found = [(who, held, spent) for who, held, spent in counted]
            self._held[environment.id] = Counter({who: held for who, held, _ in found})
            self._spent[environment.id] = Counter({who: spent for who, _, spent in found})
        return self._held[environment.id]

    def _has_room(self, environment: EnvironmentState, admission: Admission) -> bool:
        if admission.from_whom is None:
            return True
        rows = _refusals(environment).filter(opened_by=admission.from_whom, state=IncidentState.OPEN.value)
        rows = rows.filter(quarantined_revision=0, forced_revision=0).exclude(verdict=Outcome.FAIL.value)
        if admission.words_only:
            rows = rows.exclude(confidence__in=PROVEN)
        # What a second identity says as well is not the first one's alone.
        rows = rows.annotate(identities=Count("clients__identity", distinct=True)).filter(identities__lte=1)
        words_first = Case(When(confidence__in=PROVEN, then=Value(1)), default=Value(0))
        incident = rows.order_by(words_first, "last_at", "pk").select_related("environment").first()
        if incident is None:
            return False
        resolution_record(incident, Resolution(MADE_ROOM))
        Incident.objects.filter(pk=incident.pk).update(
            state=IncidentState.RESOLVED.value, resolved_epoch=environment.epoch, mended_by="", **UNMUTED
        )
        self.closed(environment, incident)
        self.made_room.add(incident.pk)
        crowd = self._crowd(environment, incident.type, ClientFamily(incident.family))
        crowd.moments.append(incident.last_at)
        named = [(incident.name, incident.version)] if incident.name else incident.suspects
        crowd.contents.update(dict.fromkeys((str(name), str(version)) for name, version in named))
        return True


def _refusals(environment: EnvironmentState) -> QuerySet[Incident]:
    """The rows of an environment's incidents about refusals, without shared incidents."""
    rows = Incident.objects.filter(environment=environment.id, cause=IncidentCause.NACK.value)
    return rows.exclude(normalised=CROWDED)

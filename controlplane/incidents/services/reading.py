"""Turns NACKs into refusals: which resource, which revision, which incident. Reads, and writes nothing.

Many clients refuse the same response with the same words, so each question is asked once for a whole batch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from controlplane.catalog.selectors import RevisionOrigin, revision_origin
from controlplane.clients.foreign_text import escape
from controlplane.clients.selectors import NackView
from controlplane.incidents.attribution import Blame, Confidence, NamedVersion, blame
from controlplane.incidents.fingerprint import (
    ALGORITHM,
    PROVEN_ALGORITHM,
    fingerprint,
    normalised_text,
    part_about,
    proven_fingerprint,
)
from controlplane.incidents.muting import wording
from controlplane.incidents.values import CROWDED
from xdscore.client_kinds import ClientFamily
from xdscore.evidence import Evidence
from xdscore.rehearsed import is_rehearsed
from xdscore.resource_types import by_word

# Bounds on what one text may make (reliability N8).
MAX_CULPRITS = 50
MAX_SUSPECTS = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of one resource by NACKs with one text. An empty `name`: no culprit is known.

    `revision`: its number; 0 where the catalogue does not know the content.
    `current`: whether the refused content is still the newest of the name.
    `crowded`: whether there are too many refusals to tell this one apart from others.
    `request_id`: that of the request which made the change, for logs.
    """

    environment: str
    word: str
    name: str
    version: str
    family: ClientFamily
    confidence: Confidence
    normalised: str
    suspects: tuple[NamedVersion, ...]
    revision: int
    written_at: datetime | None
    change: str
    author: str
    current: bool
    crowded: bool = False
    request_id: str = ""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that makes the fingerprint of this refusal."""
        return PROVEN_ALGORITHM if self.confidence.proven else ALGORITHM

    @property
    def wording(self) -> str:
        """A short text that is equal for refusals in the same words by the same family."""
        return wording(self.family, self.normalised)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the incident to which the refusal belongs."""
        if self.confidence.proven:
            return proven_fingerprint(word=self.word, name=self.name, revision=self.revision)
        return fingerprint(word=self.word, name=self.name, family=self.family, normalised=self.normalised)


@dataclass(slots=True)
class RefusalGroup:
    """The refusals of a batch of NACKs that belong to one incident. `newest`: the one about the latest revision;
    `nacks`: the NACKs, each with the number of the refused revision; `wordings`: the text of one for each of the
    different wordings.
    """

    newest: Refusal
    nacks: list[tuple[NackView, int]] = field(default_factory=list)
    wordings: dict[str, str] = field(default_factory=dict)


class Reader:
    """Finds, for a batch of NACKs, the resources that each refuses."""

    def __init__(self) -> None:
        self._blames: dict[tuple[str, str, tuple[NamedVersion, ...], tuple[NamedVersion, ...], Evidence], Blame] = {}
        self._normalised: dict[str, str] = {}
        self._origins: dict[tuple[str, str, str, str], RevisionOrigin | None] = {}

    def groups(self, nacks: Iterable[NackView]) -> list[RefusalGroup]:
        """The refusals in these NACKs, in one group for each incident."""
        groups: dict[tuple[str, str], RefusalGroup] = {}
        for nack in nacks:
            for refusal in self.refusals(nack):
                group = groups.setdefault((nack.environment, refusal.fingerprint), RefusalGroup(refusal))
                surest = group.newest.confidence.or_surer(refusal.confidence)
                newest = refusal if refusal.revision > group.newest.revision else group.newest
                group.newest = replace(newest, confidence=surest)
                group.nacks.append((nack, refusal.revision))
                group.wordings.setdefault(refusal.wording, nack.text)
        return list(groups.values())

    def refusals(self, nack: NackView) -> tuple[Refusal, ...]:
        """One refusal for each culprit of this NACK; a single one without a name where no culprit is known; and a
        single one that names all of them where there are too many. What was rehearsed counts for nothing, and may be
        what a NACK without a culprit means (rollouts.md "Rehearsal").
        """
        found = _without_rehearsed(self._blame(nack), nack)
        if found is None:
            return ()
        if not found.culprits:
            return (self._unnamed(nack, found.confidence, found.suspects[:MAX_SUSPECTS]),)
        culprits = found.culprits[:MAX_CULPRITS]
        names = frozenset(escape(name, keep="\n\t") for name, _ in culprits)
        named = tuple(self._named(nack, found.confidence, content, names) for content in culprits)
        beyond = found.culprits[MAX_CULPRITS:][:MAX_SUSPECTS]
        return (*named, self._crowded(nack, beyond)) if beyond else named

    def _named(self, nack: NackView, confidence: Confidence, content: NamedVersion, names: frozenset[str]) -> Refusal:
        origin = self._origin(nack, content)
        # The text was escaped before it was stored, and so are the names that are looked for in it.
        text = part_about(nack.text, escape(content[0], keep="\n\t"), names)
        current = origin is not None and origin.current
        return self._refusal(nack, confidence, content, (), origin, current=current, text=text)

    def _crowded(self, nack: NackView, suspects: tuple[NamedVersion, ...]) -> Refusal:
        refusal = self._unnamed(nack, Confidence.UNKNOWN, suspects)
        return replace(refusal, normalised=CROWDED, crowded=True)

    def _unnamed(self, nack: NackView, confidence: Confidence, suspects: tuple[NamedVersion, ...]) -> Refusal:
        origins = [origin for content in suspects if (origin := self._origin(nack, content)) is not None]
        # The latest change among them is the likeliest cause, and the time from when on sending counts.
        latest = max(origins, key=lambda origin: origin.at, default=None)
        current = not suspects or any(origin.current for origin in origins)
        return self._refusal(nack, confidence, ("", ""), suspects, latest, current=current, text=nack.text)

    def _refusal(
        self,
        nack: NackView,
        confidence: Confidence,
        content: NamedVersion,
        suspects: tuple[NamedVersion, ...],
        origin: RevisionOrigin | None,
        *,
        current: bool,
        text: str,
    ) -> Refusal:
        name, version = content
        if text not in self._normalised:
            said = normalised_text(text)
            # Parley's own words, which a client may know, are not a client's.
            self._normalised[text] = f"'{said}'" if said == CROWDED else said
        return Refusal(
            environment=nack.environment,
            word=nack.type,
            name=name,
            version=version,
            family=nack.family,
            confidence=confidence,
            normalised=self._normalised[text],
            suspects=suspects,
            revision=origin.number if origin is not None and name else 0,
            written_at=origin.at if origin is not None else None,
            change=origin.change_id if origin is not None else "",
            author=origin.author if origin is not None else "",
            current=current,
            request_id=origin.request_id if origin is not None else "",
        )

    def _blame(self, nack: NackView) -> Blame:
        question = (nack.type, nack.text, nack.resources, nack.suspects, nack.evidence)
        if question not in self._blames:
            self._blames[question] = blame(
                type_url=by_word[nack.type].url,
                text=nack.text,
                resources=nack.resources,
                suspects=nack.suspects,
                evidence=nack.evidence,
            )
        return self._blames[question]

    def _origin(self, nack: NackView, content: NamedVersion) -> RevisionOrigin | None:
        name, version = content
        key = (nack.environment, nack.type, name, version)
        if key not in self._origins:
            self._origins[key] = revision_origin(
                environment_key=nack.environment, word=nack.type, name=name, version=version
            )
        return self._origins[key]


def _without_rehearsed(found: Blame, nack: NackView) -> Blame | None:
    """The blame without what was rehearsed; None where nothing else is left of it."""
    if found.culprits:
        culprits = tuple(content for content in found.culprits if not is_rehearsed(content[1]))
        return replace(found, culprits=culprits) if culprits else None
    return None if any(is_rehearsed(version) for _, version in found.suspects or nack.resources) else found

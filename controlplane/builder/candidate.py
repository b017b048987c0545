"""Builds the candidate side of an environment beside its stable side, while a rollout or a rehearsal is open
(rollouts.md R2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from controlplane.builder.deep.envoy_refusals import Inspection
from controlplane.builder.recording import HeldBackWhy, Report, held_why
from controlplane.builder.stages.fallback import Resolution, resolve
from controlplane.builder.stages.isolation import Isolation
from controlplane.builder.stages.permit import permit
from controlplane.builder.stages.sides import (
    Heads,
    candidate_heads,
    candidates_of,
    diff,
    with_rehearsed,
    with_stable,
)
from controlplane.catalog.heads import CatalogState
from xdscore.access import AccessTable
from xdscore.rollout_part import CandidatePart
from xdscore.snapshot import EntryKey

Inspect = Callable[[Heads, Resolution, frozenset[bytes]], Inspection]
"""A function that has an Envoy judge a resolution of these heads, but for contents that it accepted before."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The candidate side of a build: `part` is what is published of it, None while none is open; `inspection` is that
    of both sides; `held` has the names of the rollout whose newest revision is not served on this side either.

    `rehearsed`: of a rehearsal, the names whose content cannot be served, and why. They are in no report, for they are
    no revisions.
    """

    part: CandidatePart | None
    inspection: Inspection
    held: tuple[HeldBackWhy, ...] = ()
    rehearsed: Mapping[EntryKey, str] = field(default_factory=dict)

    def report(self, stable: Report) -> Report:
        """The report on both sides, given that on the stable side."""
        if not self.held:
            return stable
        held = {each.held.key: each for each in (*stable.held, *self.held)}
        return replace(stable, held=tuple(held[key] for key in sorted(held)))


def candidate_build(
    state: CatalogState,
    stable: Resolution,
    heads: Heads,
    access: AccessTable,
    inspection: Inspection,
    inspect: Inspect,
    isolation: Isolation,
) -> Candidate:
    """Build the candidate side of `state`. A type that cannot be built stays as it is published on this side, too.

    `stable`, `heads`: the stable side as it is resolved, and the heads that it was resolved from.
    `inspection`: what an Envoy said of the stable side; `inspect`: has it judge this side, too.
    """
    if state.side is None:
        return Candidate(None, inspection)
    rehearsed = {key: head for key, head in state.rehearsed.items() if key[0] not in isolation.failed}
    candidates = frozenset(key for key in candidates_of(state.heads, state.staged) if key[0] not in isolation.failed)
    rolled = {**heads, **{key: state.heads[key] for key in candidates}}
    mixed = with_rehearsed(rolled, rehearsed, stable.entries)
    candidates |= rehearsed.keys() & mixed.keys()
    own_heads = candidate_heads(mixed, candidates, stable.entries)
    own = inspect(own_heads, resolve(own_heads), inspection.accepted)
    resolution = with_stable(isolation.keep(own.resolution), candidates, stable.entries)
    differing = isolation.keep_diff(diff(stable.entries, resolution.entries))
    rules = permit({key: entry for key, entry in differing.items() if entry is not None}, access).entries
    part = CandidatePart(state.side, {key: rules.get(key) for key in differing})
    held = [each for each in resolution.held if each.key in candidates]
    why = held_why(resolution, own_heads, state.environment, held)
    if state.rehearsal:
        accepted = replace(inspection, accepted=inspection.accepted | own.accepted)
        return Candidate(part, accepted, rehearsed={each.held.key: _sentence(each) for each in why})
    return Candidate(part, _together(inspection, own), why)


def _sentence(held: HeldBackWhy) -> str:
    """Why a name is held back: what was found or, where nothing is told of it any more, for what."""
    return " ".join(finding.detail for finding in held.findings) or held.held.reason


def _together(stable: Inspection, candidate: Inspection) -> Inspection:
    """What an Envoy said of both sides; what is served is that of the stable one."""
    refusals = {each.content: each for each in (*candidate.refusals, *stable.refusals)}
    more = tuple(each for each in candidate.findings if each not in stable.findings)
    return Inspection(
        stable.resolution,
        stable.accepted | candidate.accepted,
        tuple(refusals.values()),
        stable.findings + more,
    )

"""The digest: facts that wait become proofs, incidents and verdicts, and so do losses that are published.

Called each second by the sweeper, and by Celery; one process at a time works. Each step is complete by itself and may
run again after a crash: proofs and NACKs are let go only with, or after, what became of them.
"""

import time

import structlog

from controlplane.builder.claims import claim
from controlplane.catalog.services import proofs_record, quarantine_probed
from controlplane.clients.clock import database_now
from controlplane.clients.selectors import nacks_pending, probes_pending, proofs_pending
from controlplane.clients.services import facts_prune, nacks_shed, probes_drop, proofs_drop, streams_reap
from controlplane.common.errors import NotFound
from controlplane.history.services import history_prune
from controlplane.incidents.services.assigning import assignees_check
from controlplane.incidents.services.judging import incidents_judge, incidents_resolve
from controlplane.incidents.services.losing import losses_open
from controlplane.incidents.services.muting import mutes_end
from controlplane.incidents.services.pruning import incidents_prune
from controlplane.incidents.services.recording import nacks_record
from controlplane.incidents.services.settled_lines import settled_told

log = structlog.get_logger(__name__)

_PROOFS = 2_000
_NACKS = 500
# A run ends after about this time, so that whoever calls it has its turn with its other jobs.
_AT_MOST_S = 5.0
_PRUNE_EVERY_S = 60.0


def digest(*, wait_s: float = 0.0) -> int:
    """Turn what ADS reported into incidents: take in proofs (ACKs of new contents), probes and NACKs, and judge
    incidents. Returns how many were taken in. Does nothing where another process still does it after `wait_s` seconds.
    """
    with claim("digest", wait_s=wait_s) as claimed:
        if not claimed:
            return 0
        streams_reap()
        nacks_shed()
        until = time.monotonic() + _AT_MOST_S
        taken = 0
        while (batch := _proofs_digest() + _probes_digest() + _nacks_digest()) > 0:
            taken += batch
            if time.monotonic() > until:
                break
        # What was published since the last run may resolve something, though no fact came in.
        incidents_resolve(proven=())
        losses_open()
        mutes_end()
        incidents_judge()
        settled_told()
        _pruning.prune_when_due()
    return taken


def _proofs_digest() -> int:
    """Tell the catalogue which contents clients have acknowledged; returns how many. This comes before NACKs, because a
    quarantine needs the last acknowledged content.
    """
    proofs = proofs_pending(limit=_PROOFS)
    if proofs:
        contents = [proof.content for proof in proofs]
        proofs_record(proven=contents)
        incidents_resolve(proven=contents)
        proofs_drop(proofs=proofs)
    return len(proofs)


def _probes_digest() -> int:
    """Tell the catalogue which clients acknowledged a content that others refused; returns how many. This comes after
    `_proofs_digest`, by which the catalogue learns that a client acknowledged it at all.
    """
    probes = probes_pending(limit=_PROOFS)
    for probe in probes:
        if not probe.verified:
            continue  # an ADS process of the version before let it try
        content = probe.content
        try:
            quarantine_probed(
                environment_key=content.environment,
                word=content.word,
                name=content.name,
                version=content.version,
                kind=probe.kind,
                mark=probe.mark,
            )
        except NotFound:
            # Its environment was deleted meanwhile.
            continue
    probes_drop(ids=[probe.id for probe in probes])
    return len(probes)


def _nacks_digest() -> int:
    nacks = nacks_pending(limit=_NACKS)
    return nacks_record(nacks) if nacks else 0


class _Pruning:
    """Deletes old facts and incidents and looks at assignees, at intervals; remembers when this process last did."""

    def __init__(self) -> None:
        self._due_at = time.monotonic() + _PRUNE_EVERY_S

    def prune_when_due(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + _PRUNE_EVERY_S
            assignees_check()
            pruned = facts_prune() + incidents_prune() + history_prune(now=database_now())
            if pruned:
                log.info("facts.pruned", rows=pruned)


_pruning = _Pruning()

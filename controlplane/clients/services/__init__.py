"""The writes of this room: facts come in, what waits is handed on, what is old is let go.

`facts_write` is called by the fact thread of an ADS process, `report_keep` when a client's own word was compared,
`clients_label` when somebody labels clients; everything else by the digest, in a worker.
"""

from controlplane.clients.services.inbox import nacks_mark_digested, probes_drop, proofs_drop
from controlplane.clients.services.labelling import clients_label
from controlplane.clients.services.reporting import report_keep
from controlplane.clients.services.upkeep import SILENT_S, facts_prune, nacks_shed, streams_reap
from controlplane.clients.services.writing import facts_write

__all__ = [
    "SILENT_S",
    "clients_label",
    "facts_prune",
    "facts_write",
    "nacks_mark_digested",
    "nacks_shed",
    "probes_drop",
    "proofs_drop",
    "report_keep",
    "streams_reap",
]

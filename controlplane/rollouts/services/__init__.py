"""The writes of this room: rollouts open, go on and end by themselves, and people act on them; rehearsals
begin and end.
"""

from controlplane.rollouts.services.acting import (
    rollout_abort,
    rollout_advance,
    rollout_approve,
    rollout_pause,
    rollout_reject,
    rollout_resume,
)
from controlplane.rollouts.services.asking import webhooks_ask
from controlplane.rollouts.services.rehearsals import rehearsal_begin, rehearsal_end
from controlplane.rollouts.services.signing import webhook_secret_make
from controlplane.rollouts.services.ticking import rollout_tick, rollouts_tick

__all__ = [
    "rehearsal_begin",
    "rehearsal_end",
    "rollout_abort",
    "rollout_advance",
    "rollout_approve",
    "rollout_pause",
    "rollout_reject",
    "rollout_resume",
    "rollout_tick",
    "rollouts_tick",
    "webhook_secret_make",
    "webhooks_ask",
]

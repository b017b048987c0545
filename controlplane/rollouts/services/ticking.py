"""Looks whether rollouts are to open, to go on or to go back, and does that: any process, at any time (R12)."""


def rollout_tick(*, environment_id: int) -> None:
    """Bring the rollout of one environment as far as facts allow, or open one where changes wait. One process at a time
    does this for an environment; called in another one meanwhile, it returns at once.
    """
    raise NotImplementedError


def rollouts_tick() -> None:
    """Bring the rollouts of all environments as far as facts allow: the job of the worker's sweeper."""
    raise NotImplementedError

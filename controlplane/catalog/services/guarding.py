"""Has every write judged by what connected clients would lose, before it is stored (interfaces.md section 8).

Who is connected is known by a room above this one (`controlplane.loss`), which gives its judge here when it is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from controlplane.catalog.guarding import (
    NOTHING_LOST,
    Consent,
    Loss,
    LossRefused,
    LossThreshold,
    Prospect,
    losses_together,
)
from controlplane.catalog.models import Environment

Judge = Callable[[Prospect], Mapping[str, Loss]]
"""A function that says what the clients of each environment would lose; environments whose clients lose nothing are
left out.
"""

_judges: list[Judge] = []


def judge_register(judge: Judge) -> None:
    """Let the function `judge` tell what clients lose by any write from now on."""
    _judges[:] = [judge]


def _judge(prospect: Prospect) -> Mapping[str, Loss]:
    """What the clients of each environment would lose by a write, by environment. Raises RuntimeError where no judge is
    registered: a program that writes has to load `controlplane.loss`.
    """
    if not _judges:
        raise RuntimeError("a write, and nobody who can judge what clients would lose by it")
    return _judges[0](prospect)


def loss_foresee(prospect: Prospect) -> Loss:
    """What connected clients would lose by a write, and whether it needs consent; refuses nothing. For dry runs."""
    losses = _judge(prospect)
    if not losses:
        return NOTHING_LOST
    rows = Environment.objects.filter(key__in=losses).values_list("key", "loss_access_clients", "loss_other_percent")
    asks = any(
        LossThreshold(*columns).reached(losses[key], access=access)
        for key, *columns in rows
        for access in prospect.of_access
    )
    loss = replace(losses_together(losses.values()), asks=asks)
    if losses.keys() == {prospect.environment}:
        return loss
    here = losses.get(prospect.environment, NOTHING_LOST)
    return replace(loss, own=replace(loss, names=here.names, who=here.who, truncated=True))


def loss_accept(prospect: Prospect, consent: Consent, *, told: bool = True) -> Loss:
    """What connected clients lose by a write. Raises LossRefused where that reaches the threshold of an environment and
    `consent` does not accept it. `told`: the writer may be told by name who loses what.

    Called within the transaction of the write, before its change: the thresholds are those in force until then.
    """
    loss = loss_foresee(prospect)
    if loss.asks and consent.asked and consent.accept_loss < loss.clients:
        raise LossRefused(loss if told else loss.in_numbers, prospect.environment if loss.own is None else "")
    return loss

"""Has every write judged by what connected clients would lose, before it is stored (interfaces.md section 8).

Who is connected is known by a room above this one (`controlplane.loss`), which gives its judge here when it is loaded.
"""

from collections.abc import Callable, Mapping

from controlplane.catalog.guarding import Consent, Loss, LossRefused, LossThreshold, Prospect, losses_together
from controlplane.catalog.models import Environment

Judge = Callable[[Prospect], Mapping[str, Loss]]
"""Says what the clients of each environment would lose; environments whose clients lose nothing are left out."""

_judges: list[Judge] = []


def judge_register(judge: Judge) -> None:
    """Have writes judged by this one from now on."""
    _judges[:] = [judge]


def loss_judge(prospect: Prospect) -> Mapping[str, Loss]:
    """What clients would lose, by the environment they are connected to. Raises RuntimeError where there is no judge:
    a program that writes has to load `controlplane.loss`.
    """
    if not _judges:
        raise RuntimeError("a write, and nobody who can judge what clients would lose by it")
    return _judges[0](prospect)


def loss_accept(prospect: Prospect, consent: Consent) -> Loss:
    """What connected clients would lose, which whoever writes has accepted or the environments allow. Raises
    LossRefused.

    Called within the transaction of the write, before its change. The thresholds are those in force before it.
    """
    losses = loss_judge(prospect)
    loss = losses_together(losses.values())
    if consent.asked and consent.accept_loss < loss.clients:
        rows = Environment.objects.filter(key__in=losses)
        for key, access_clients, other_percent in rows.values_list("key", *_COLUMNS):
            if LossThreshold(access_clients, other_percent).reached(losses[key], access=prospect.of_access):
                raise LossRefused(loss, key)
    return loss


_COLUMNS = ("loss_access_clients", "loss_other_percent")

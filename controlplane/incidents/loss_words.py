"""Says in words what clients lost by a change: the same on pages, in messages and in incidents. Pure."""

from collections import Counter
from typing import Final

from controlplane.catalog.guarding import Loss
from xdscore.client_kinds import ClientFamily

_TOLD: Final = 5  # names, clients and kinds that a message tells one by one
_CHANGE_CHARS: Final = 8  # as pages shorten a public id
_SAID_CHARS: Final = 100  # so that the sentence is whole in a message
_FAMILIES: Final = {family.value: family for family in ClientFamily}


def loss_sentence(loss: Loss, *, change: str, author: str, message: str) -> str:
    """The sentence that an incident says of a loss: by whose change, in whose words, and where to undo it."""
    said = f": “{message[:_SAID_CHARS]}”" if message else ""
    return (
        f"{clients_lost(loss)} lost {names_count(loss)} by change {change[:_CHANGE_CHARS]} of {author}{said}. "
        "The page of the change has the way back."
    )


def clients_lost(loss: Loss) -> str:
    """The words for how many clients lost something, such as `3 of 5 connected clients`, and for how many it is not
    known.
    """
    doubt = f" ({loss.doubtful} of them perhaps)" if loss.doubtful else ""
    return f"{loss.clients} of {_counted(loss.connected, 'connected client')}{doubt}"


def names_count(loss: Loss) -> str:
    """The words for how many names were lost: `2 names`; `more than 100 names` where not all are kept."""
    return f"{'more than ' if loss.truncated else ''}{_counted(len(loss.names), 'name')}"


def names_told(loss: Loss) -> str:
    """The names that most clients lost, as words, each with how many clients lost it."""
    told = [f"{each.type} '{each.name}' ({_counted(each.clients, 'client')})" for each in loss.names[:_TOLD]]
    return _listed(told, len(loss.names) + loss.truncated)


def losers_told(loss: Loss) -> str:
    """The node ids of the clients that lost something, as words."""
    return _listed([each.node_id for each in loss.who[:_TOLD]], loss.clients)


def kinds_told(loss: Loss) -> str:
    """The kinds of clients that lost something, as words; those of most clients first."""
    kinds = sorted(loss.kinds.items(), key=lambda each: (-each[1], each[0]))
    return _listed([f"{count} {kind}" for kind, count in kinds[:_TOLD]], len(kinds))


def losing_family(loss: Loss) -> ClientFamily:
    """The family of software to which most clients belong that lost something."""
    counted = Counter[ClientFamily]()
    for kind, count in sorted(loss.kinds.items()):
        # A kind is family and version, with a blank between them.
        counted[_FAMILIES.get(kind.partition(" ")[0], ClientFamily.OTHER)] += count
    return counted.most_common(1)[0][0] if counted else ClientFamily.OTHER


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _listed(told: list[str], of: int) -> str:
    return ", ".join((*told, *(("…",) if of > len(told) else ())))

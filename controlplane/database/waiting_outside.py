"""What a request or a job holds that others wait for, and how it lets go of it before it waits for somebody outside.

Someone outside answers when they like. Whoever is about to wait for them calls `before_waiting_outside` first; what
opens connections for notifications does it itself, so that no caller can forget.
"""

from collections.abc import Callable
from contextvars import ContextVar

from django.db import connections

# Gives the turn of the request that runs here back (`controlplane.api.turns`). Safe in any thread, any number of times.
turn_give_back: ContextVar[Callable[[], None] | None] = ContextVar("turn_give_back", default=None)


def before_waiting_outside() -> None:
    """Give back this thread's turn to write and its pooled connections, before it waits for something outside. Raises
    RuntimeError within a transaction, whose locks would be held for as long as somebody else likes.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            raise RuntimeError("a transaction is open: nobody outside may be waited for")
        connection.close_if_unusable_or_obsolete()
    give_back = turn_give_back.get()
    if give_back is not None:
        give_back()

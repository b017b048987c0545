"""Named places in the writing of truth, at which a test can end or hold the process (reliability F8, F11).

Nothing happens there in production: there is no variable and no setting that arms one.
"""

from collections.abc import Callable


def _pass(name: str) -> None:
    """Do nothing: what a failpoint does unless a test set another action."""


_action: Callable[[str], None] = _pass


def failpoint(name: str) -> None:
    """Call the action that a test set, with the name of the place that the process has come to; tests end the process
    there.
    """
    _action(name)


def arm(action: Callable[[str], None] = _pass) -> None:
    """Call `action` with the name of each failpoint that this process comes to from now on; without an argument, do
    nothing there again.
    """
    global _action  # noqa: PLW0603 - one process, one action
    _action = action

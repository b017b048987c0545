"""Named places in the writing of truth, at which a test can end or hold the process (reliability F8, F11).

Nothing happens there in production: there is no variable and no setting that arms one.
"""

from collections.abc import Callable


def _pass(name: str) -> None:
    """Do nothing: the action where none is armed."""


_action: Callable[[str], None] = _pass


def failpoint(name: str) -> None:
    """Run the armed action, for the process is at the place called `name`; tests kill it there."""
    _action(name)


def arm(action: Callable[[str], None] = _pass) -> None:
    """Run `action` at each failpoint from now on, in this process; without an argument, do nothing there."""
    global _action  # noqa: PLW0603 - one process, one action
    _action = action

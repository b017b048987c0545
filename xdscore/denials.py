"""The two ways in which a name is not there for somebody. `decision` says them, `access` keeps one of each verdict."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """NOT_FOUND. `hidden`: this rule (0: the environment's default) hides it, which only operators can tell. `removed`:
    it was published here once.
    """

    hidden: bool = False
    removed: bool = False
    rule: int = 0


@dataclass(frozen=True, slots=True)
class Denied:
    """PERMISSION_DENIED by this rule (0: the environment's default), with the rule's words for clients."""

    rule: int
    message: str

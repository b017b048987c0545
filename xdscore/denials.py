"""The two ways in which a name is not there for somebody. `decision` says them, `access` keeps one of each verdict."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """The decision NOT_FOUND. `hidden`: an access rule hides the name, which only operators can tell; `rule` is its
    number (0: the environment's default). `removed`: the name was published in this environment once.
    """

    hidden: bool = False
    removed: bool = False
    rule: int = 0


@dataclass(frozen=True, slots=True)
class Denied:
    """The decision PERMISSION_DENIED, by the access rule with this number (0: the environment's default), with the
    rule's words for clients.
    """

    rule: int
    message: str

"""Has what is worth knowing of a write told by rooms above this one, which know who is connected."""

from collections.abc import Callable, Sequence

from xdscore.findings import Finding
from xdscore.schema import ParsedResource

Adviser = Callable[[str, Sequence[ParsedResource]], tuple[Finding, ...]]
"""A function that says what is worth knowing of writing these resources to the environment with this key."""

_advisers: list[Adviser] = []


def adviser_register(adviser: Adviser) -> None:
    """Let the function `adviser` tell what is worth knowing of any write from now on."""
    _advisers[:] = [adviser]


def advice(environment_key: str, resources: Sequence[ParsedResource]) -> tuple[Finding, ...]:
    """What is worth knowing of writing these resources: warnings only, about the connected clients of now. They
    stay with the change that writes them, not with the revisions.
    """
    return tuple(finding for adviser in _advisers if resources for finding in adviser(environment_key, resources))

"""Parley's version: the one place that says it, and which versions may run side by side (docs/reference/versions.md).

Server, ADS and `xdsctl` read it here, and so does the wheel of `xdsctl`. `make release` writes it; nobody else does.
"""

import re
from dataclasses import dataclass
from typing import Final

VERSION: Final = "0.1.0-dev"

# Semantic Versioning 2.0.0, of which this project writes `-dev` alone: what comes before that release. What stands
# behind a plus (the commit of a build) takes no part in comparisons.
_FORM: Final = re.compile(
    r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})(-dev)?(?:\+[0-9A-Za-z.-]{1,64})?", re.ASCII
)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One version of Parley. Versions compare in the order of their release; `0.2.0-dev` comes before `0.2.0`."""

    major: int
    minor: int
    patch: int
    released: bool = True

    @classmethod
    def parse(cls, text: str) -> "Version":
        """The version in a text like `0.2.0`, `0.2.0-dev` or `0.2.0-dev+8d8d2a0c11e4`. Raises ValueError, with a
        sentence, for anything else.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"'{text}' is not a version: write three numbers with dots between them, such as 0.2.0.")
        return cls(int(found[1]), int(found[2]), int(found[3]), found[4] is None)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}{'' if self.released else '-dev'}"

    @property
    def followers(self) -> "tuple[Version, Version, Version]":
        """The three versions that may be released after this one: next patch, next minor, next major."""
        return (
            Version(self.major, self.minor, self.patch + 1),
            Version(self.major, self.minor + 1, 0),
            Version(self.major + 1, 0, 0),
        )

    @property
    def next_dev(self) -> "Version":
        """The development version that a checkout has after the release of this version."""
        return Version(self.major, self.minor, self.patch + 1, released=False)


def side_by_side(one: Version, other: Version) -> bool:
    """Whether processes of these versions may run beside each other, and `xdsctl` of one speak to the other's server.

    True for neighbouring minor versions, whatever their patch; and for a major version's first minor version with the
    major one before. That should be its last minor version, which the numbers do not tell.
    """
    lower, upper = sorted((one, other))
    if lower.major == upper.major:
        return upper.minor - lower.minor <= 1
    return upper.major - lower.major == 1 and upper.minor == 0

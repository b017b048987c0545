"""What a rule about several fields, or about the meaning of one, has to say. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from xdscore.codes import Code
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import ALIKE, NO_VALUE, TOGETHER
from xdscore.schema.positions import Path, label_of
from xdscore.schema.walk import AnyMessage


@dataclass(frozen=True, slots=True)
class Said:
    """A violation at `place`, the path from the message that the rule is about.

    first: the path of what `place` contradicts, for the codes whose text has {first}; empty for others.
    """

    place: Path
    code: Code
    values: Mapping[str, object] = field(default_factory=dict)
    first: Path = ()
    severity: Severity | None = None

    def below(self, path: Path) -> "Said":
        """A copy with paths that begin at the message in which this one's message stands at `path`."""
        return replace(self, place=(*path, *self.place), first=(*path, *self.first) if self.first else ())

    def finding(self, first: str) -> Finding:
        """The violation as a finding without a place. `first`: how people are told the path `first`."""
        values = {"field": label_of(self.place), "first": first, **self.values}
        found = self.code.filled(values)
        return found if self.severity is None else replace(found, severity=self.severity)


Rule = Callable[[AnyMessage], Iterator[Said]]
"""A function that judges one message, and not the messages inside it on their own account."""


def together(place: Path, problem: str) -> Said:
    """The violation that fields contradict each other."""
    return Said(place, TOGETHER, {"problem": problem})


def no_value(place: Path, problem: str) -> Said:
    """The violation that the value of one field keeps the API's own rule and is refused all the same."""
    return Said(place, NO_VALUE, {"problem": problem})


def alike(place: Path, first: Path, what: str) -> Said:
    """The violation that what stands at `place` stands at `first` already; `what` says in which respect."""
    return Said(place, ALIKE, {"what": what}, first)

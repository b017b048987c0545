"""Reads a JSON object member by member and collects everything that is wrong with it, instead of stopping at the first.
Pure.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from controlplane.common.errors import InputInvalid
from xdscore.codes import shown
from xdscore.findings import Finding, Severity

_DURATION: Final = re.compile(r"([0-9]{1,6})(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_Choice = TypeVar("_Choice", bound=StrEnum)


def duration_text(seconds: int) -> str:
    """A number of seconds as settings spell it, in the largest unit that divides it: `90s`, `5m`, `2h`, `1d`."""
    unit = next((unit for unit in ("d", "h", "m") if seconds and seconds % _SECONDS[unit] == 0), "s")
    return f"{seconds // _SECONDS[unit]}{unit}"


class Reader:
    """Collects what is wrong with a JSON document while it is read."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def wrong(self, pointer: str, detail: str, hint: str = "") -> None:
        """Note that the value at `pointer` is wrong."""
        self.findings.append(
            Finding(code=InputInvalid.code, severity=Severity.ERROR, pointer=pointer, detail=detail, hint=hint)
        )

    def object(self, data: object, pointer: str) -> "Object":
        """The JSON object at `pointer`; an empty one, and a finding, where `data` is something else."""
        if not isinstance(data, Mapping):
            self.wrong(pointer, "This must be an object.")
            data = {}
        return Object(self, data, pointer)


class Object:
    """One JSON object that is read member by member."""

    def __init__(self, reader: Reader, data: Mapping[str, object], pointer: str) -> None:
        self.reader, self.data, self.pointer = reader, data, pointer

    def at(self, name: str) -> str:
        """The JSON pointer of a member."""
        return f"{self.pointer}/{name}"

    def wrong(self, name: str, detail: str, hint: str = "") -> None:
        """Note that a member is wrong."""
        self.reader.wrong(self.at(name), detail, hint)

    def has(self, name: str) -> bool:
        """Whether the member is given; null is as good as absent."""
        return self.data.get(name) is not None

    def only(self, *names: str) -> None:
        """Note each member that has none of these names."""
        for name in self.data:
            if name not in names:
                self.wrong(shown(str(name), 60), "There is no such setting.", f"Settings here: {', '.join(names)}.")

    def flag(self, name: str, default: bool) -> bool:
        """A member that is true or false."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, "This must be true or false.")
            return default
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A member that is a whole number from `low` to `high`."""
        value = self.data.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.wrong(name, f"This must be a whole number from {low:,} to {high:,}.")
            return default
        return value

    def choice(self, name: str, kind: type[_Choice], default: _Choice) -> _Choice:
        """A member that is one of the words of `kind`."""
        value = self.data.get(name)
        if value is None:
            return default
        found = next((member for member in kind if member.value == value), None)
        if found is None:
            self.wrong(name, f"This must be one of: {', '.join(member.value for member in kind)}.")
        return found or default

    def duration(self, name: str, default: int, low: int, high: int) -> int:
        """A member that is a duration such as "5m", in seconds."""
        value = self.data.get(name)
        if value is None:
            return default
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        seconds = int(match[1]) * _SECONDS[match[2]] if match else -1
        if not low <= seconds <= high:
            self.wrong(
                name,
                f"This must be a duration from {duration_text(low)} to {duration_text(high)}.",
                'Write a whole number and a unit: "30s", "5m", "2h" or "1d".',
            )
            return default
        return seconds

    def texts(self, name: str, default: tuple[str, ...], most: int, longest: int) -> tuple[str, ...]:
        """A member that is a list of texts, none of them twice."""
        value = self.data.get(name)
        if value is None:
            return default
        if (
            not isinstance(value, Sequence)
            or isinstance(value, str)
            or not all(isinstance(each, str) and 0 < len(each) <= longest for each in value)
        ):
            self.wrong(name, f"This must be a list of texts of at most {longest:,} characters.")
            return default
        if len(value) > most:
            self.wrong(name, f"This may hold at most {most} texts.")
            return default
        return tuple(dict.fromkeys(value))

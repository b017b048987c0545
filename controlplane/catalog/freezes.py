"""When an environment takes no changes: freezes, once or each week (interfaces.md section 8).

Values, and the one reader of the JSON in which the API, the console and the database spell them. Pure: the time is
given. A freeze refuses what people and pipelines write of resources and of what clients may read; what leads back
(rollbacks, undos, quarantines) and the environment's other settings go through, as they do on hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import ClassVar, Final
from zoneinfo import ZoneInfo

from controlplane.accounts.principal import Role
from controlplane.catalog.json_reading import Object, Reader
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.common.zones import zone_named
from xdscore.codes import shown

MAX_FREEZES: Final = 50
MAX_REASON_CHARS: Final = 200
_DAY: Final = timedelta(days=1)
_MIDNIGHT: Final = "24:00"


class Weekday(StrEnum):
    """A day of the week; the first one is Python's day 0."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


_WEEKDAYS: Final = tuple(Weekday)


@dataclass(frozen=True, slots=True)
class Weekly:
    """Hours of each week: on each of `days` from the time of day `begins` on until `ends`, which is on the next day
    where it is not later; None: until midnight. In the time of `zone`, an IANA name.
    """

    days: tuple[Weekday, ...]
    begins: time
    ends: time | None
    zone: str = "UTC"

    def end_at(self, now: datetime) -> datetime | None:
        """When the hours that `now` is in end; None where it is in none."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        for day in (today, today - _DAY):
            if _WEEKDAYS[day.weekday()] not in self.days:
                continue
            to_next = self.ends is None or self.ends <= self.begins
            begins = datetime.combine(day, self.begins, zone)
            ends = datetime.combine(day + _DAY if to_next else day, self.ends or time(), zone)
            # In UTC, where an hour that the clocks skip or repeat is counted as it passes.
            if begins.astimezone(UTC) <= now < ends.astimezone(UTC):
                return ends.astimezone(UTC)
        return None

    def as_json(self) -> dict[str, object]:
        """The hours as the JSON object that `freezes_from_json` reads."""
        return {
            "days": [day.value for day in self.days],
            "from": f"{self.begins:%H:%M}",
            "until": f"{self.ends:%H:%M}" if self.ends is not None else _MIDNIGHT,
            "zone": self.zone,
        }

    @property
    def words(self) -> str:
        """The hours in words, such as `friday 15:00 to 24:00 Europe/Berlin`."""
        said = self.as_json()
        return f"{', '.join(self.days)} {said['from']} to {said['until']} {self.zone}"


@dataclass(frozen=True, slots=True)
class Freeze:
    """A time in which an environment takes no changes: from `begins` on until `ends` or, with `weekly`, in the hours of
    each week that are between the two, of which either may be None: no bound.
    """

    reason: str
    begins: datetime | None = None
    ends: datetime | None = None
    weekly: Weekly | None = None

    def end_at(self, now: datetime) -> datetime | None:
        """When the freeze that holds at `now` ends; None where it does not hold."""
        if (self.begins is not None and now < self.begins) or (self.ends is not None and now >= self.ends):
            return None
        end = self.weekly.end_at(now) if self.weekly is not None else self.ends
        return min(end, self.ends) if end is not None and self.ends is not None else end

    def as_json(self) -> dict[str, object]:
        """The freeze as the JSON object that `freezes_from_json` reads."""
        found: dict[str, object] = {"from": _moment(self.begins), "until": _moment(self.ends), "reason": self.reason}
        return {**found, "weekly": self.weekly.as_json()} if self.weekly is not None else found


@dataclass(frozen=True, slots=True)
class Frozen:
    """A freeze that holds now, and when it ends."""

    freeze: Freeze
    until: datetime

    @property
    def words(self) -> str:
        """Until when and why, in words."""
        hours = f" (each {self.freeze.weekly.words})" if self.freeze.weekly is not None else ""
        return f"until {self.until:%Y-%m-%d %H:%M} UTC{hours}: {self.freeze.reason}"

    def as_json(self) -> dict[str, object]:
        """The freeze and its end as a JSON object, as a problem document tells it."""
        return {**self.freeze.as_json(), "ends_at": _moment(self.until)}


def frozen_at(freezes: Iterable[Freeze], now: datetime) -> Frozen | None:
    """The freeze that holds at `now`; of several, the one that ends last. None where none holds."""
    held = [Frozen(freeze, end) for freeze in freezes if (end := freeze.end_at(now)) is not None]
    return max(held, key=lambda each: each.until, default=None)


class WriteFrozen(Conflict):
    """A write was refused because the environment is frozen. `role`: who has it may write nevertheless."""

    code: ClassVar[str] = "XDS3030"

    def __init__(self, environment: str, frozen: Frozen, role: Role) -> None:
        super().__init__(
            f"Environment '{environment}' is frozen {frozen.words}. In an emergency, whoever has the role {role.value} "
            "writes nevertheless by saying why (over REST in break_glass), which everybody is told of. Nothing was "
            "changed."
        )
        self.frozen = frozen
        self.role = role


def freezes_from_json(data: object, *, where: str = "/freezes") -> tuple[Freeze, ...]:
    """The freezes in this JSON list. Raises InputInvalid with a finding for each value that is wrong or unknown.
    `where`: the JSON pointer of the list, for the findings.
    """
    reader = Reader()
    found: list[Freeze] = []
    if not isinstance(data, Sequence) or isinstance(data, str):
        reader.wrong(where, "This must be a list of freezes.")
    elif len(data) > MAX_FREEZES:
        reader.wrong(where, f"An environment may have at most {MAX_FREEZES} freezes.")
    else:
        for number, each in enumerate(data):
            one = reader.object(each, f"{where}/{number}")
            freeze = _freeze(one) if isinstance(each, Mapping) else None
            if freeze is not None:
                found.append(freeze)
    if reader.findings:
        raise InputInvalid("The freezes are not valid. Nothing was changed.", findings=tuple(reader.findings))
    return tuple(found)


def freezes_stored(data: Sequence[object]) -> tuple[Freeze, ...]:
    """The freezes that a column of the database holds."""
    return freezes_from_json(data) if data else ()


def _freeze(given: Object) -> Freeze | None:
    before = len(given.reader.findings)
    given.only("from", "until", "reason", "weekly")
    begins, ends = _time_at(given, "from"), _time_at(given, "until")
    reason = given.data.get("reason")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_CHARS or not reason.isprintable():
        given.wrong("reason", f"A freeze says why, in one line of at most {MAX_REASON_CHARS} characters.")
    weekly = _weekly(given.reader.object(given.data["weekly"], given.at("weekly"))) if given.has("weekly") else None
    if not given.has("weekly"):
        for name in ("from", "until"):
            if not given.has(name):
                given.wrong(name, "A freeze that is not weekly needs this time, such as 2026-12-31T23:59:59Z.")
    if begins is not None and ends is not None and ends <= begins:
        given.wrong("until", "A freeze ends after it begins.")
    if len(given.reader.findings) > before:
        return None
    return Freeze(str(reason).strip(), begins, ends, weekly)


def _weekly(given: Object) -> Weekly | None:
    before = len(given.reader.findings)
    given.only("days", "from", "until", "zone")
    days = given.texts("days", (), len(_WEEKDAYS), 20)
    for day in days:
        if day not in _WEEKDAYS:
            given.wrong("days", f"There is no day '{shown(day, 20)}'.", f"Days: {', '.join(_WEEKDAYS)}.")
    if not days and len(given.reader.findings) == before:
        given.wrong("days", "A weekly freeze needs at least one day.", f"Days: {', '.join(_WEEKDAYS)}.")
    begins, ends = _time_of_day(given, "from"), _time_of_day(given, "until")
    if begins is None:
        given.wrong("from", "A day begins at 00:00 and ends at 24:00.")
    zone = given.data.get("zone", "UTC")
    if not isinstance(zone, str) or zone_named(zone) is None:
        given.wrong("zone", f"There is no time zone '{shown(str(zone), 60)}'.", 'Such as "UTC" or "Europe/Berlin".')
    if len(given.reader.findings) > before or begins is None:
        return None
    return Weekly(tuple(day for day in _WEEKDAYS if day in days), begins, ends, str(zone))


def _time_at(given: Object, name: str) -> datetime | None:
    """A member that is a time with its offset from UTC; None where it is absent, and where it is wrong."""
    value = given.data.get(name)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    given.wrong(name, "This must be a time such as 2026-12-31T23:59:59Z.")
    return None


def _time_of_day(given: Object, name: str) -> time | None:
    """A member that is a time of day such as 18:00; None for 24:00, and a finding where it is wrong."""
    value = given.data.get(name)
    if value == _MIDNIGHT:
        return None
    try:
        if isinstance(value, str):
            return datetime.strptime(value, "%H:%M").time()  # noqa: DTZ007 - a time of day has no zone
    except ValueError:
        pass
    given.wrong(name, "This must be a time of day such as 18:00.")
    return time()


def _moment(moment: datetime | None) -> str | None:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if moment is not None else None

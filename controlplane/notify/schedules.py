"""When digests are due: every hour, or every day at an hour of a named time zone. Pure: the time is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from controlplane.catalog.json_reading import Object

MAX_ZONE_CHARS: Final = 64
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class Every(StrEnum):
    """How often a digest is sent."""

    HOUR = "hour"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the digests of a channel are due. `hour`: from 0 to 23, the hour of the day at which one of each day is due;
    0 for one of each hour. `zone`: an IANA name.
    """

    every: Every = Every.DAY
    hour: int = 8
    zone: str = "UTC"

    def due_after(self, moment: datetime) -> datetime:
        """The first time after `moment` at which a digest is due, in UTC. An hour that clocks skip is due an hour
        later, one that comes twice the first time.
        """
        zone = ZoneInfo(self.zone)
        local = moment.astimezone(zone)
        if self.every is Every.HOUR:
            into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
            return moment.astimezone(UTC) - into + _HOUR
        today = datetime.combine(local.date(), time(self.hour), zone).astimezone(UTC)
        return today if today > moment else datetime.combine(local.date() + _DAY, time(self.hour), zone).astimezone(UTC)

    def local_words(self, moment: datetime) -> str:
        """A time in the words of the schedule's zone, such as `2026-11-28 08:00 Europe/Berlin`."""
        return f"{moment.astimezone(ZoneInfo(self.zone)):%Y-%m-%d %H:%M} {self.zone}"

    @property
    def words(self) -> str:
        """When digests are due, in words."""
        return "every hour" if self.every is Every.HOUR else f"every day at {self.hour:02}:00 {self.zone}"

    def as_json(self) -> dict[str, object]:
        """The schedule as the JSON object that `schedule_read` reads."""
        return {"every": self.every.value, "hour": self.hour, "zone": self.zone}


DEFAULT: Final = Schedule()


def schedule_read(given: Object) -> Schedule:
    """The schedule in this JSON object; what it does not name has its default. What is wrong is noted in its reader."""
    given.only("every", "hour", "zone")
    every = given.choice("every", Every, DEFAULT.every)
    hour = given.number("hour", DEFAULT.hour, 0, 23)
    zone = given.data.get("zone") if given.has("zone") else DEFAULT.zone
    if not (isinstance(zone, str) and len(zone) <= MAX_ZONE_CHARS and _is_zone(zone)):
        given.wrong("zone", "This must be the name of a time zone.", "Write one such as UTC or Europe/Berlin.")
        zone = DEFAULT.zone
    return Schedule(every, hour if every is Every.DAY else 0, zone)


def schedule_stored(data: Mapping[str, object] | None) -> Schedule:
    """The schedule that a column of the database holds; the default where it holds none."""
    if data is None:
        return DEFAULT
    return Schedule(Every(str(data["every"])), int(str(data["hour"])), str(data["zone"]))


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return False
    return True

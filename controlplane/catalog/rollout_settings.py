"""How changes of an environment reach its clients: at once, or by a rollout and its steps (interfaces.md section 8).

Values, and the one reader of the JSON in which the API, the console and the database spell them. Pure. What is wrong
with the JSON is a list of findings, all of them at once; whether a group exists is for who knows the groups to judge.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from controlplane.catalog.json_reading import Object, Reader, duration_text
from controlplane.common.errors import InputInvalid
from xdscore.codes import shown
from xdscore.resource_types import by_word

MAX_STEPS: Final = 20
MAX_GROUPS: Final = 20
MAX_WEBHOOKS: Final = 5
MAX_URL_CHARS: Final = 2_000
MAX_GROUP_CHARS: Final = 63
MAX_KINDS: Final = 50  # of each kind so many clients; more than that is a percentage
MAX_CLIENTS: Final = 1_000_000
PERMILLE_PER_PERCENT: Final = 10
MAX_BAKE_S: Final = 7 * 86_400
MIN_ANSWER_S, MAX_ANSWER_S = 1, 600
# Immediate types are traffic, not configuration (rollouts.md, "Immediate types").
DEFAULT_IMMEDIATE: Final = ("endpoint", "runtime")
DEFAULT_ANSWER_S: Final = 30
DEFAULT_SILENT_PERCENT: Final = 10


class RolloutMode(StrEnum):
    """Whether changes go to all clients at once (off), to pilots first, or in steps."""

    OFF = "off"
    PILOT = "pilot"
    STEPS = "steps"


class OnFailure(StrEnum):
    """What a rollout that fails takes back: the resources that clients refuse (revert), or everything (abort)."""

    REVERT = "revert"
    ABORT = "abort"


class Unexposed(StrEnum):
    """What a rollout does where no client of the cohort asks for what differs: wait for a person's word (ask), wait
    until one asks, or promote.
    """

    ASK = "ask"
    WAIT = "wait"
    PROMOTE = "promote"


class Measure(StrEnum):
    """In which unit a step says how many clients it has: of each kind of client, of all, or in percent of all."""

    KINDS = "kinds"
    CLIENTS = "clients"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The gates of a rollout that are set. None: as in the environment, for a step; the default, for the environment.

    `errors`: whether a new error told to the cohort fails a step.
    `lost_percent`: by how many percent points more of the cohort's clients than of the others may lose their streams.
    `webhooks`: the URLs that are asked.
    """

    errors: bool | None = None
    lost_percent: int | None = None
    webhooks: tuple[str, ...] | None = None

    def over(self, others: "GateSettings") -> "GateSettings":
        """The gates of both: each of this one that is set, and where it is not, that of `others`."""
        return GateSettings(
            others.errors if self.errors is None else self.errors,
            others.lost_percent if self.lost_percent is None else self.lost_percent,
            others.webhooks if self.webhooks is None else self.webhooks,
        )

    def as_json(self) -> dict[str, object]:
        """The gates that are set, as the JSON object that `settings_from_json` reads."""
        set_here = {
            "errors": self.errors,
            "lost_percent": self.lost_percent,
            "webhooks": None if self.webhooks is None else list(self.webhooks),
        }
        return {name: value for name, value in set_here.items() if value is not None}


NO_GATES: Final = GateSettings()


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One step of a rollout: which clients have the candidate from it on, and what it waits for.

    `measure`, `amount`: how many clients; of percent, in permille.
    `groups`: keys of client groups all of whose clients have it, too.
    `bake_s`: for how many seconds the step lasts at least.
    `approve`: whether a person has to agree before the next step.
    `gates`: the gates of this step that differ from those of the environment.
    """

    measure: Measure
    amount: int
    groups: tuple[str, ...] = ()
    bake_s: int = 0
    approve: bool = False
    gates: GateSettings = NO_GATES

    def as_json(self) -> dict[str, object]:
        """The step as the JSON object that `settings_from_json` reads."""
        found: dict[str, object] = {self.measure.value: _amount_json(self.measure, self.amount)}
        if self.groups:
            found["groups"] = list(self.groups)
        if self.bake_s:
            found["bake"] = duration_text(self.bake_s)
        if self.approve:
            found["approve"] = True
        if gates := self.gates.as_json():
            found["gates"] = gates
        return found


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How changes of an environment reach its clients.

    `steps`: what each step of a rollout is; only where `mode` is steps.
    `immediate`: the words of the types that reach both sides at once.
    `on_failure`: what a rollout that fails takes back.
    `unexposed`: what happens where nobody is exposed; None: `ask` for steps, `promote` for a pilot (`when_unexposed`).
    `answer_within_s`: how many seconds a gate waits for answers.
    `silent_percent`: how many percent of the exposed clients may be silent.
    `prefer_group`: the key of the client group that pilots are chosen from first; empty: none.
    `rehearsal_group`: the key of the client group whose clients may rehearse; empty: none may.
    `four_eyes`: the author of a change may not approve its rollout.
    `gates`: the gates of every step.
    """

    mode: RolloutMode = RolloutMode.OFF
    steps: tuple[RolloutStep, ...] = ()
    immediate: tuple[str, ...] = DEFAULT_IMMEDIATE
    on_failure: OnFailure = OnFailure.REVERT
    unexposed: Unexposed | None = None
    answer_within_s: int = DEFAULT_ANSWER_S
    silent_percent: int = DEFAULT_SILENT_PERCENT
    prefer_group: str = ""
    rehearsal_group: str = ""
    four_eyes: bool = False
    gates: GateSettings = NO_GATES

    @property
    def stages(self) -> bool:
        """Whether what is written waits for a rollout."""
        return self.mode is not RolloutMode.OFF

    @property
    def when_unexposed(self) -> Unexposed:
        """What happens where nobody is exposed (rollouts.md, settled question 8)."""
        if self.unexposed is not None:
            return self.unexposed
        return Unexposed.PROMOTE if self.mode is RolloutMode.PILOT else Unexposed.ASK

    @property
    def groups(self) -> frozenset[str]:
        """The keys of all client groups that are named."""
        named = {group for step in self.steps for group in step.groups}
        return frozenset(named | ({self.prefer_group, self.rehearsal_group} - {""}))

    def as_json(self) -> dict[str, object]:
        """The settings as the JSON object that the API answers, the database stores and `settings_from_json` reads."""
        return {
            "mode": self.mode.value,
            "steps": [step.as_json() for step in self.steps],
            "immediate": list(self.immediate),
            "on_failure": self.on_failure.value,
            "unexposed": self.unexposed.value if self.unexposed is not None else None,
            "answer_within": duration_text(self.answer_within_s),
            "silent_percent": self.silent_percent,
            "prefer_group": self.prefer_group or None,
            "rehearsal_group": self.rehearsal_group or None,
            "four_eyes": self.four_eyes,
            "gates": self.gates.as_json(),
        }


ROLLOUT_OFF: Final = RolloutSettings()


def settings_from_json(
    data: object, *, groups: Collection[str] | None = None, where: str = "/rollout"
) -> RolloutSettings:
    """The settings in this JSON object; what it does not name has its default. Raises InputInvalid with a finding for
    each value that is wrong or unknown.

    `groups`: the keys of the client groups that there are; None: whether a named group exists is not judged. `where`:
    the JSON pointer of the object, for the findings.
    """
    reader = Reader()
    settings = _settings(reader.object(data, where), groups)
    if reader.findings:
        raise InputInvalid(
            "The settings of rollouts are not valid. Nothing was changed.", findings=tuple(reader.findings)
        )
    return settings


def settings_stored(data: object) -> RolloutSettings:
    """The settings that a column of the database holds; None there: rollouts are off."""
    return ROLLOUT_OFF if data is None else settings_from_json(data)


def settings_to_store(settings: RolloutSettings) -> dict[str, object] | None:
    """The settings as the database stores them: None where all are the defaults."""
    return None if settings == ROLLOUT_OFF else settings.as_json()


def _settings(given: Object, groups: Collection[str] | None) -> RolloutSettings:
    given.only(
        *("mode", "steps", "immediate", "on_failure", "unexposed", "answer_within", "silent_percent"),
        *("prefer_group", "rehearsal_group", "four_eyes", "gates"),
    )
    mode = given.choice("mode", RolloutMode, RolloutMode.OFF)
    steps = _steps(given, groups)
    if mode is RolloutMode.STEPS and not given.data.get("steps"):
        given.wrong("steps", "A rollout in steps needs at least one step.", 'For example [{"kinds": 1}].')
    immediate = given.texts("immediate", DEFAULT_IMMEDIATE, len(by_word), 100)
    for word in immediate:
        if word not in by_word:
            given.wrong("immediate", f"There is no type '{shown(word, 60)}'.", f"Types: {', '.join(by_word)}.")
    unexposed = given.choice("unexposed", Unexposed, Unexposed.ASK) if given.has("unexposed") else None
    return RolloutSettings(
        mode=mode,
        steps=steps,
        immediate=immediate,
        on_failure=given.choice("on_failure", OnFailure, OnFailure.REVERT),
        unexposed=unexposed,
        answer_within_s=given.duration("answer_within", DEFAULT_ANSWER_S, MIN_ANSWER_S, MAX_ANSWER_S),
        silent_percent=given.number("silent_percent", DEFAULT_SILENT_PERCENT, 0, 99),
        prefer_group=_group(given, "prefer_group", groups),
        rehearsal_group=_group(given, "rehearsal_group", groups),
        four_eyes=given.flag("four_eyes", False),
        gates=_gates(given),
    )


def _steps(given: Object, groups: Collection[str] | None) -> tuple[RolloutStep, ...]:
    value = given.data.get("steps")
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        given.wrong("steps", "This must be a list of steps.")
        return ()
    if len(value) > MAX_STEPS:
        given.wrong("steps", f"A rollout may have at most {MAX_STEPS} steps.")
        return ()
    steps: list[RolloutStep] = []
    for number, each in enumerate(value):
        one = given.reader.object(each, given.at(f"steps/{number}"))
        step = _step(one, groups) if isinstance(each, Mapping) else None
        if step is not None:
            _check_not_falling(given, number, steps, step)
            steps.append(step)
    return tuple(steps)


def _check_not_falling(given: Object, number: int, before: Sequence[RolloutStep], step: RolloutStep) -> None:
    """Note a step with fewer clients than one before it in the same unit. Of different units that is known only when a
    rollout opens (rollouts.md, settled question 7).
    """
    most = max((each.amount for each in before if each.measure is step.measure), default=0)
    if step.amount < most:
        word = step.measure.value
        given.wrong(
            f"steps/{number}/{word}",
            f"A step may not have fewer clients than one before it, which has {word} "
            f"{_amount_json(step.measure, most)}.",
        )


def _step(given: Object, groups: Collection[str] | None) -> RolloutStep | None:
    given.only(*(measure.value for measure in Measure), "groups", "bake", "approve", "gates")
    named = [measure for measure in Measure if given.has(measure.value)]
    amount = _amount(given, named[0]) if len(named) == 1 else None
    if len(named) != 1:
        given.reader.wrong(given.pointer, "A step needs exactly one of kinds, clients and percent.")
    chosen = given.texts("groups", (), MAX_GROUPS, MAX_GROUP_CHARS)
    for key in chosen:
        _check_group(given, "groups", key, groups)
    bake_s = given.duration("bake", 0, 0, MAX_BAKE_S)
    approve, gates = given.flag("approve", False), _gates(given)
    return RolloutStep(named[0], amount, chosen, bake_s, approve, gates) if amount is not None else None


def _amount(given: Object, measure: Measure) -> int | None:
    value = given.data[measure.value]
    if measure is not Measure.PERCENT:
        most = MAX_KINDS if measure is Measure.KINDS else MAX_CLIENTS
        return given.number(measure.value, 0, 1, most) or None
    permille = value * PERMILLE_PER_PERCENT if isinstance(value, int | float) and not isinstance(value, bool) else -1
    whole = round(permille) if abs(permille) < MAX_CLIENTS else -1
    if not 1 <= whole <= 100 * PERMILLE_PER_PERCENT or abs(whole - permille) > 1e-6:
        given.wrong(measure.value, "This must be a number from 0.1 to 100, with at most one decimal.")
        return None
    return whole


def _amount_json(measure: Measure, amount: int) -> int | float:
    if measure is not Measure.PERCENT:
        return amount
    return amount / PERMILLE_PER_PERCENT if amount % PERMILLE_PER_PERCENT else amount // PERMILLE_PER_PERCENT


def _gates(owner: Object) -> GateSettings:
    if not owner.has("gates"):
        return NO_GATES
    given = owner.reader.object(owner.data["gates"], owner.at("gates"))
    given.only("errors", "lost_percent", "webhooks")
    webhooks = given.texts("webhooks", (), MAX_WEBHOOKS, MAX_URL_CHARS)
    for url in webhooks:
        if not _is_url(url):
            given.wrong("webhooks", f"'{shown(url, 100)}' is no URL that begins with https:// or http://.")
    return GateSettings(
        given.flag("errors", True) if given.has("errors") else None,
        given.number("lost_percent", 0, 0, 100) if given.has("lost_percent") else None,
        webhooks if given.has("webhooks") else None,
    )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        return False


def _group(given: Object, name: str, groups: Collection[str] | None) -> str:
    value = given.data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_GROUP_CHARS:
        given.wrong(name, "This must be the key of a client group, or null.")
        return ""
    _check_group(given, name, value, groups)
    return value


def _check_group(given: Object, name: str, key: str, groups: Collection[str] | None) -> None:
    if groups is not None and key not in groups:
        given.wrong(name, f"There is no client group '{shown(key, 63)}'.")

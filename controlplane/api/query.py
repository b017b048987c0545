"""Query parameters, as strictly as bodies: `?dryrun=true` must not make a real change because somebody misspelt it."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Final, TypeVar

from rest_framework.request import Request

from controlplane.catalog.guarding import MAX_BREAK_REASON_CHARS, Consent
from controlplane.common.errors import InputInvalid
from controlplane.http.moments import moment_or_age
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.labels import Requirement, selector_read
from xdscore.schema.codes import FIELD_UNKNOWN, VALUE_REFUSED

T = TypeVar("T")

MAX_MESSAGE_CHARS: Final = 1_000  # the change's column
_MAX_CLIENTS: Final = 1_000_000_000
_MAX_CASES: Final = 1_000_000
_SECONDS: Final = re.compile(r"(\d{1,4})(ms|s)?")


class Query:
    """The query parameters of one request. Each method reads one and notes what is wrong; `done` raises all problems
    together. A parameter may occur once, unless it is among `repeatable`.
    """

    def __init__(self, request: Request, known: Iterable[str], *, repeatable: Iterable[str] = ()) -> None:
        self._request = request
        self._given = request.query_params
        self._findings: list[Finding] = []
        several = frozenset(repeatable)
        names = sorted({*known, *several})
        for name in self._given:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names) or 'none'}."
                self._refuse(name, "is not a parameter here", code=FIELD_UNKNOWN.code, hint=hint)
            elif name not in several and len(self._given.getlist(name)) > 1:
                self._refuse(name, "is given more than once")

    def text(self, name: str, default: str = "", *, at_most: int = 1_024) -> str:
        """The value of a parameter that is one line of at most `at_most` characters; `default` where it is not
        given.
        """
        value = self._given.get(name, default)
        if len(value) > at_most:
            self._refuse(name, f"has {len(value)} characters; at most {at_most} are allowed")
        elif not value.isprintable():
            self._refuse(name, "holds a character that cannot be printed on one line")
        else:
            return value
        return default

    def message(self) -> str:
        """The message for a change: the parameter `message`, else the header X-Parley-Message in UTF-8, else empty."""
        if "message" in self._given:
            return self.text("message", at_most=MAX_MESSAGE_CHARS)
        header = self._request.headers.get("X-Parley-Message", "")
        try:
            text = header.encode("latin-1").decode("utf-8")  # servers hand headers on as Latin-1 (PEP 3333, ASGI)
        except UnicodeError:
            text = header
        if len(text) > MAX_MESSAGE_CHARS or not text.isprintable():
            self._findings.append(
                Finding(
                    code=VALUE_REFUSED.code,
                    severity=Severity.ERROR,
                    detail=f"The header X-Parley-Message must be one line of at most {MAX_MESSAGE_CHARS} characters.",
                )
            )
        return text

    def consent(self) -> Consent:
        """What the writer takes upon themselves: the parameters `accept_loss` and `accept_cases`, 0 where they are not
        given, and `break_glass`, empty where it is not.
        """
        accepted = self.whole("accept_loss", 0, minimum=0, maximum=_MAX_CLIENTS)
        return Consent(
            accepted,
            break_glass=self.text("break_glass", at_most=MAX_BREAK_REASON_CHARS).strip(),
            accept_cases=self.whole("accept_cases", 0, minimum=0, maximum=_MAX_CASES),
        )

    def flag(self, name: str, *, default: bool = False) -> bool:
        """The value of a parameter that is `true` or `false`; `default` where it is not given."""
        value = self._given.get(name)
        if value not in (None, "true", "false"):
            self._refuse(name, "must be true or false")
        return default if value is None else value == "true"

    def whole(self, name: str, default: int, *, minimum: int, maximum: int) -> int:
        """The value of a parameter that is a whole number from `minimum` to `maximum`; `default` where it is not
        given.
        """
        value = self._given.get(name)
        if value is None:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 18 or not minimum <= int(value) <= maximum:
            self._refuse(name, f"must be a whole number from {minimum} to {maximum}")
            return default
        return int(value)

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """The value of a parameter that is one of the words `choices`; `default` where it is not given."""
        value = self._given.get(name, default)
        allowed = list(choices)
        if value != default and value not in allowed:
            self._refuse(name, f"cannot be '{shown(value)}'", hint=f"Choices: {', '.join(allowed)}.")
            return default
        return value

    def words(self, name: str, choices: Iterable[str]) -> tuple[str, ...]:
        """The values of a parameter that are among the words `choices`. It may be repeated, and hold several words
        separated by commas; none where it is not given.
        """
        allowed = list(choices)
        given = [word for value in self._given.getlist(name) for word in value.split(",")]
        strange = ", ".join(f"'{word}'" for word in dict.fromkeys(given) if word not in allowed)
        if strange:
            self._refuse(name, f"cannot hold {shown(strange)}", hint=f"Choices: {', '.join(allowed)}.")
            return ()
        return tuple(given)

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be repeated, unchecked."""
        return tuple(self._given.getlist(name))

    def seconds(self, name: str, *, at_most: int) -> float:
        """The duration in seconds of a parameter such as `20s`, `500ms` or `20`; 0 where it is not given."""
        value = self._given.get(name)
        if value is None:
            return 0.0
        match = _SECONDS.fullmatch(value)
        seconds = int(match[1]) / (1_000 if match[2] == "ms" else 1) if match else at_most + 1.0
        if seconds > at_most:
            self._refuse(name, f"must be a time of at most {at_most}s, for example 20s")
            return 0.0
        return seconds

    def since(self, name: str, now: Callable[[], datetime]) -> datetime | None:
        """The time of a parameter, which is a time or an age such as `2h` to subtract from `now`; None where it is not
        given.
        """
        value = self._given.get(name)
        if value is None:
            return None
        found = moment_or_age(value, now())
        if found is None:
            self._refuse(name, "must be a time such as 2026-07-01T12:00:00Z, or an age such as 24h")
        return found

    def span(self, now: Callable[[], datetime]) -> tuple[datetime | None, datetime | None]:
        """The times of the parameters `since` and `until`, as `since` reads each; None for what is not given. The
        second may not be before the first.
        """
        first, last = self.since("since", now), self.since("until", now)
        if first is not None and last is not None and last < first:
            self._refuse("until", "is before 'since', so nothing can be in between")
        return first, last

    def found(self) -> bool | None:
        """The parameter `findings`: True for `with`, False for `without`; None where it is not given."""
        word = self.choice("findings", ("with", "without"), "")
        return word == "with" if word else None

    def parsed(self, name: str, parse: Callable[[str], T | None], default: T, *, wanted: str) -> T:
        """The value that `parse` makes of a parameter's text; `default` where it is not given. Where `parse` returns
        None, the problem says that the text is not `wanted`.
        """
        value = self._given.get(name)
        if value is None:
            return default
        found = parse(value)
        if found is None:
            self._refuse(name, wanted)
            return default
        return found

    def labels(self, name: str = "label") -> tuple[Requirement, ...]:
        """The selector in a parameter; no conditions where it is not given."""
        try:
            return selector_read(self._given.get(name, ""))
        except ValueError as error:
            self._refuse(name, "is no selector of labels", hint=str(error))
            return ()

    def refuse(self, name: str, problem: str, *, hint: str = "") -> None:
        """Note a problem of the parameter `name`, which `done` will raise."""
        self._refuse(name, problem, hint=hint)

    def done(self) -> None:
        """Raise InputInvalid with every problem noted so far and every unknown parameter; return where there is
        none.
        """
        if self._findings:
            raise InputInvalid("A query parameter cannot be used. Nothing was changed.", findings=tuple(self._findings))

    def _refuse(self, name: str, problem: str, *, code: str = VALUE_REFUSED.code, hint: str = "") -> None:
        self._findings.append(
            Finding(code=code, severity=Severity.ERROR, detail=f"The parameter '{shown(name)}' {problem}.", hint=hint)
        )

"""Second factors as values: which there are, and whether a code is right. Pure: the time is handed in."""

import hashlib
from base64 import b32encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hmac import compare_digest
from typing import Final

import pyotp

MAX_KEY_NAME_CHARS: Final = 64
MAX_KEYS: Final = 10  # of one person
RECOVERY_CODES: Final = 10
# 80 bits: nobody tries them all, also with the hashes at hand, so that the hash need not be slow.
RECOVERY_BYTES: Final = 10
_CODE_DIGITS: Final = 6
_STEP_S: Final = 30
# RFC 6238 section 5.2: one step for what the clocks differ and the network takes.
_STEPS_OFF: Final = 1
_GROUP_CHARS: Final = 4
# What a code is mistyped as: base32 has none of these digits.
_MISREAD: Final = str.maketrans("018", "olb", " -")


class Way(StrEnum):
    """What somebody can prove themselves by beside a password."""

    APP = "app"
    KEY = "key"
    RECOVERY = "recovery"

    @property
    def words(self) -> str:
        """The way in words, as the audit log has it."""
        return _WORDS[self]


_WORDS: Final = {Way.APP: "authenticator app", Way.KEY: "security key", Way.RECOVERY: "recovery code"}


@dataclass(frozen=True, slots=True)
class App:
    """An authenticator app: since when there is one, and when a code of it was taken last."""

    created_at: datetime
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """A security key as its owner sees it."""

    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Factors:
    """Everything that somebody has beside a password. `codes_left`: recovery codes that were not used yet."""

    app: App | None
    keys: tuple[Key, ...]
    codes_left: int

    @property
    def any(self) -> bool:
        """Whether there is a second factor: recovery codes alone are none."""
        return self.app is not None or bool(self.keys)

    @property
    def count(self) -> int:
        """The number of second factors, without recovery codes."""
        return len(self.keys) + (self.app is not None)


def step_of(secret: str, code: str, *, now_s: float, after: int) -> int | None:
    """The time step to which a code of an authenticator app belongs; None for a wrong code, and for one of a step that
    is not later than `after`. `now_s`: Unix time.
    """
    typed = code.replace(" ", "")
    if len(typed) != _CODE_DIGITS or not (typed.isascii() and typed.isdigit()):
        return None
    app, now = pyotp.TOTP(secret, digits=_CODE_DIGITS, interval=_STEP_S), int(now_s) // _STEP_S
    steps = range(max(now - _STEPS_OFF, after + 1), now + _STEPS_OFF + 1)
    fitting = [step for step in steps if compare_digest(app.generate_otp(step), typed)]
    return fitting[0] if fitting else None


def app_uri(secret: str, *, username: str, issuer: str) -> str:
    """What a QR code says to an authenticator app. `issuer`: what the app calls Parley."""
    return pyotp.TOTP(secret, digits=_CODE_DIGITS, interval=_STEP_S).provisioning_uri(name=username, issuer_name=issuer)


def grouped(text: str, *, by: str) -> str:
    """A secret or code in groups of four characters, as people copy it by hand; `by` stands between them."""
    return by.join(text[start : start + _GROUP_CHARS] for start in range(0, len(text), _GROUP_CHARS))


def recovery_codes(random: Sequence[bytes]) -> tuple[str, ...]:
    """Recovery codes as they are shown, each of RECOVERY_BYTES random bytes."""
    return tuple(grouped(b32encode(each).decode("ascii").lower(), by="-") for each in random)


def recovery_digest(user_id: int, code: str) -> str:
    """The hash under which a recovery code of a user is stored, however it was typed."""
    read = code.strip().lower().translate(_MISREAD)
    return hashlib.sha256(f"recovery-code:{user_id}:{read}".encode("utf-8", "replace")).hexdigest()

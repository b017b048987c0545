"""Which metadata is one token that is in force, and nothing else is (reliability threat 4)."""

import asyncio
import json
from base64 import urlsafe_b64decode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adsserver.identity import callers as callers_module
from adsserver.identity.authorities import Authorities
from adsserver.identity.callers import EXPIRED, REVOKED, Callers
from adsserver.identity.identification import (
    NOBODY,
    Caller,
    Metadata,
    UnauthenticatedError,
    UndecidedError,
    token_caller,
)
from adsserver.ports import ClientToken
from controlplane.accounts.token_text import api_token_text, client_token_text, token_digest
from tests.support.ads_client import until

NOW = 1_000_000.0
GOOD, EXPIRED_TOKEN, REVOKED_TOKEN = (client_token_text(expires_at=None) for _ in range(3))
API_TOKEN = api_token_text()
PARTS = GOOD.split(".")


@dataclass
class Clock:
    """A wall clock that a test sets."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Losses:
    """Why each caller was lost."""

    reasons: list[str] = field(default_factory=list)

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)


def known() -> Callers:
    callers = Callers(Clock())
    callers.replace(
        {
            token_digest(GOOD): ClientToken("pay", "prod", NOW + 1),
            token_digest(EXPIRED_TOKEN): ClientToken("pay", "prod", NOW),
        }
    )
    return callers


BAD: dict[str, Metadata] = {
    "none": (),
    "other keys only": (("x-authorization", f"Bearer {GOOD}"), ("user-agent", "grpc")),
    "two values": (("authorization", f"Bearer {GOOD}"), ("authorization", f"Bearer {GOOD}")),
    "two values joined": (("authorization", f"Bearer {GOOD},Bearer {GOOD}"),),
    "two tokens": (("authorization", f"Bearer {GOOD} {GOOD}"),),
    "no scheme": (("authorization", GOOD),),
    "other scheme": (("authorization", f"Basic {GOOD}"),),
    "scheme only": (("authorization", "Bearer"),),
    "scheme and blank": (("authorization", "Bearer  "),),
    "empty": (("authorization", ""),),
    "bytes": (("authorization", f"Bearer {GOOD}".encode()),),
    "tab": (("authorization", f"Bearer\t{GOOD}"),),
    "control character": (("authorization", f"Bearer {GOOD}\x00"),),
    "not ascii": (("authorization", f"Bearer {GOOD}\u00e9"),),
    "oversized": (("authorization", f"Bearer {GOOD}{'a' * 512}"),),
    "unknown": (("authorization", f"Bearer {client_token_text(expires_at=None)}"),),
    "cut": (("authorization", f"Bearer {GOOD[:-1]}"),),
    "extended": (("authorization", f"Bearer {GOOD}a"),),
    "other case": (("authorization", f"Bearer {GOOD.swapcase()}"),),
    "other expiry, same secret": (
        ("authorization", f"Bearer {client_token_text(expires_at=datetime.now(UTC)).rpartition('.')[0]}.{PARTS[2]}"),
    ),
    "secret only": (("authorization", f"Bearer {PARTS[2]}"),),
    "wrong prefix: a token of the API": (("authorization", f"Bearer {API_TOKEN}"),),
    "its hash": (("authorization", f"Bearer {token_digest(GOOD)}"),),
    "expired": (("authorization", f"Bearer {EXPIRED_TOKEN}"),),
    "revoked": (("authorization", f"Bearer {REVOKED_TOKEN}"),),
    "binary key": (("authorization-bin", f"Bearer {GOOD}".encode()),),
}


@pytest.mark.parametrize("metadata", BAD.values(), ids=BAD)
def test_token_caller__not_exactly_one_token_in_force__unauthenticated(metadata: Metadata) -> None:
    with pytest.raises(UnauthenticatedError) as caught:
        token_caller(metadata, known(), NOW)

    assert GOOD not in str(caught.value)


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "Bearer  {} "])
def test_token_caller__token_in_force__is_its_subject_within_its_limits(form: str) -> None:
    caller = token_caller((("user-agent", "x"), ("authorization", form.format(GOOD))), known(), NOW)

    assert caller == Caller("pay", "prod", NOW + 1, token_digest(GOOD))


def test_token_caller__unknown_expired_and_revoked__read_alike() -> None:
    texts = set()
    for name in ("unknown", "expired", "revoked"):
        with pytest.raises(UnauthenticatedError) as caught:
            token_caller(BAD[name], known(), NOW)
        texts.add(str(caught.value))

    assert texts == {"The token is unknown, expired or revoked."}


def test_token_caller__tokens_not_loaded_yet__nobody_is_called_unknown() -> None:
    with pytest.raises(UndecidedError):
        token_caller((("authorization", f"Bearer {GOOD}"),), Callers(), NOW)


def test_token_text__for_a_grpc_client__is_read_as_a_jwt_that_ends_when_the_token_does() -> None:
    ends = datetime(2027, 1, 1, tzinfo=UTC)

    parts = client_token_text(expires_at=ends).split(".")

    assert len(parts) == 3
    head, claims, _secret = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts)
    assert json.loads(head) == {"typ": "parley"}
    assert json.loads(claims) == {"exp": int(ends.timestamp())}


def test_callers__token_leaves_the_directory__its_holders_lose_it_once() -> None:
    callers, losses, others = known(), Losses(), Losses()
    callers.hold(token_caller((("authorization", f"Bearer {GOOD}"),), callers, NOW), losses)
    callers.hold(Caller("spiffe://td/a", expires_at=NOW + 9), others)

    callers.replace({})
    callers.sweep()

    assert losses.reasons == [REVOKED]
    assert others.reasons == []


def test_callers__credential_reaches_its_end__is_lost_at_the_next_look() -> None:
    clock, losses = Clock(), Losses()
    callers = Callers(clock)
    callers.hold(Caller("spiffe://td/a", expires_at=NOW + 9), losses)

    callers.sweep()
    clock.now += 9
    callers.sweep()

    assert losses.reasons == [EXPIRED]
    assert callers.empty


async def test_callers__a_look_fails__what_has_ended_is_ended_and_the_next_look_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers_module, "SWEEP_PERIOD_S", 0.0)
    clock, losses, gone = Clock(), Losses(), Losses()
    authorities = Authorities(tmp_path / "ca.pem")
    authorities.close()  # from now on every look fails
    callers = Callers(clock, authorities)
    callers.hold(Caller("spiffe://td/a", expires_at=NOW), losses)
    running = asyncio.ensure_future(callers.run())

    await until(lambda: losses.reasons == [EXPIRED])
    callers.hold(Caller("spiffe://td/b", expires_at=NOW), gone)
    await until(lambda: gone.reasons == [EXPIRED])

    assert not running.done()
    running.cancel()


def test_callers__released_or_nobody__is_not_watched() -> None:
    clock, losses = Clock(), Losses()
    callers = Callers(clock)
    callers.hold(Caller("spiffe://td/a", expires_at=NOW), losses)()
    callers.hold(NOBODY, losses)

    clock.now += 9
    callers.sweep()

    assert losses.reasons == []
    assert callers.empty

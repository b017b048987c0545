"""Security keys and passkeys (WebAuthn): what a browser is asked, and whether its answer proves a key.

For which site a key is good follows from PARLEY_PUBLIC_URL alone, never from what a request says of itself. The
challenge of a question is kept in the session of whoever is asked, for one answer.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialParameters,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from controlplane.accounts.logins import Caller, code_count, code_uncount
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.factors.models import SecurityKey
from controlplane.factors.services import factor_permit, factor_record, first_codes
from controlplane.factors.telling import person_tell
from controlplane.factors.values import MAX_KEY_NAME_CHARS, MAX_KEYS, Way

_LASTS_S: Final = 300  # WebAuthn level 3, section 15.1: five minutes for whoever has to find the key
_MAX_ANSWER_CHARS: Final = 16_384  # one with the largest public key and an attestation has some 6 KiB
_ALGORITHMS: Final = (-8, -7, -257)  # Ed25519, ES256, RS256: what keys have, and `cryptography` verifies
_DISCOURAGED: Final = UserVerificationRequirement.DISCOURAGED  # the password is the other factor
# What the library raises at an answer that is none: it reads CBOR and keys that anybody may have made up.
_NO_ANSWER: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    struct.error,
)
_GONE: Final = "What the key answered belongs to no question of this page, or came after five minutes. Try again."


@dataclass(frozen=True, slots=True)
class Question:
    """What a browser is to ask a security key: `options` as JSON (WebAuthn level 3, sections 5.4 and 5.5). `origin`:
    the only one under which it makes sense to ask.
    """

    options: str
    origin: str


@dataclass(frozen=True, slots=True)
class Site:
    """For which site keys are good: its host, and its origin as browsers write it."""

    host: str
    origin: str


def site() -> Site | None:
    """The site for which keys are good; None where browsers let no key be used: without a name, or without TLS on
    another machine than theirs (WebAuthn level 3, section 5.1.3; a secure context).
    """
    url = urlsplit(settings.PARLEY.public_url)
    host = str(url.hostname)
    usual = {"http": 80, "https": 443}[url.scheme]
    origin = f"{url.scheme}://{host}" + (f":{url.port}" if url.port not in (None, usual) else "")
    named = not _is_address(host) and (url.scheme == "https" or host == "localhost")
    return Site(host, origin) if named else None


def no_site() -> str:
    """Why no key can be used here, as a sentence; empty where keys can be."""
    if site() is not None:
        return ""
    return (
        f"Security keys need a name with https:// in PARLEY_PUBLIC_URL, which is {settings.PARLEY.public_url} now: "
        "browsers use them for nothing else."
    )


def key_add_ask(session: SessionBase, user: User) -> Question | None:
    """The question for a new key of this user; None where no key can be used."""
    here = site()
    if here is None:
        return None
    options, state = _server(here).register_begin(
        PublicKeyCredentialUserEntity(id=_handle(user), name=user.get_username(), display_name=user.get_username()),
        credentials=_credentials(user),  # a key that is known says so, instead of being added twice
        resident_key_requirement=ResidentKeyRequirement.DISCOURAGED,
        user_verification=_DISCOURAGED,
    )
    _keep(session, "add", user, state)
    return Question(json.dumps(dict(options)["publicKey"]), here.origin)


def key_add(session: SessionBase, user: User, *, name: str, answer: str, caller: Caller) -> tuple[str, ...]:
    """Make the key that answered a second factor of the user. Returns the recovery codes, to be shown once, where it is
    the first second factor; else nothing. Raises InputInvalid and Conflict.
    """
    factor_permit(user)
    name = " ".join(name.split())
    if not 0 < len(name) <= MAX_KEY_NAME_CHARS or not name.isprintable():
        raise InputInvalid(f"A key's name has 1 to {MAX_KEY_NAME_CHARS} printable characters. Nothing was changed.")
    here, state = site(), _take(session, "add", user)
    if here is None or state is None:
        raise InputInvalid(f"{no_site() or _GONE} Nothing was changed.")
    try:
        made = _server(here).register_complete(state, _read(answer))
        credential = made.credential_data
        if credential is None:
            raise ValueError("no credential")
        AttestedCredentialData(bytes(credential)).public_key.verify  # noqa: B018  it can be read back
    except _NO_ANSWER:
        raise InputInvalid("The key's answer is not good for this page. Try again. Nothing was changed.") from None
    try:
        with transaction.atomic():
            if SecurityKey.objects.filter(user=user).count() >= MAX_KEYS:
                raise Conflict(f"An account has at most {MAX_KEYS} security keys: remove one. Nothing was changed.")
            codes = first_codes(user)
            SecurityKey.objects.create(
                user=user,
                name=name,
                digest=_digest(credential.credential_id),
                credential=bytes(credential),
                sign_count=made.counter,
            )
            factor_record(user, "second-factor.added", Way.KEY, caller, name=name)
    except IntegrityError:
        raise Conflict(f"You have a key called '{name}' already, or this key is known. Nothing was changed.") from None
    person_tell(user, f"The security key '{name}' was added to your sign-in.")
    return codes


def key_ask(session: SessionBase, user: User) -> Question | None:
    """The question for a key that this user has; None where they have none, or no key can be used."""
    here, known = site(), _credentials(user)
    if here is None or not known:
        return None
    options, state = _server(here).authenticate_begin(known, user_verification=_DISCOURAGED)
    _keep(session, "ask", user, state)
    return Question(json.dumps(dict(options)["publicKey"]), here.origin)


def key_try(session: SessionBase, user: User, answer: str, *, caller: Caller) -> bool:
    """Whether a key of this user gave this answer to the question of this session; a question is good for one answer.
    Counts the attempt before. Raises TooManyAttempts.
    """
    counted = code_count(user, caller)
    here, state = site(), _take(session, "ask", user)
    if here is None or state is None:
        return False
    try:
        read = _read(answer)
        found = _server(here).authenticate_complete(state, _credentials(user), read)
        count = AuthenticationResponse.from_dict(read).response.authenticator_data.counter
    except _NO_ANSWER:
        return False
    key = SecurityKey.objects.get(user=user, digest=_digest(found.credential_id))
    # WebAuthn level 3, section 6.1.1: a count that does not grow is that of a copy of the key.
    if (count or key.sign_count) and count <= key.sign_count:
        return False
    unchanged = SecurityKey.objects.filter(pk=key.pk, sign_count=key.sign_count)
    right = unchanged.update(sign_count=count, last_used_at=timezone.now()) == 1
    if right:
        code_uncount(counted)
    return right


def _server(here: Site) -> Fido2Server:
    server = Fido2Server(PublicKeyCredentialRpEntity(id=here.host, name="Parley"), verify_origin=here.origin.__eq__)
    server.allowed_algorithms = [
        PublicKeyCredentialParameters(type=PublicKeyCredentialType.PUBLIC_KEY, alg=each) for each in _ALGORITHMS
    ]
    return server


def _credentials(user: User) -> list[AttestedCredentialData]:
    rows = SecurityKey.objects.filter(user=user).values_list("credential", flat=True)
    return [AttestedCredentialData(bytes(each)) for each in rows]


def _keep(session: SessionBase, purpose: str, user: User, state: Mapping[str, Any]) -> None:
    session[f"security_key_{purpose}"] = [user.pk, timezone.now().timestamp(), dict(state)]


def _take(session: SessionBase, purpose: str, user: User) -> Mapping[str, Any] | None:
    """What was kept of a question to this user, and is kept no longer; None without one, or after five minutes."""
    kept = session.pop(f"security_key_{purpose}", None)
    if not isinstance(kept, list):
        return None
    user_id, at_s, state = kept
    fresh = 0 <= timezone.now().timestamp() - at_s < _LASTS_S
    return state if fresh and user_id == user.pk and isinstance(state, dict) else None


def _read(answer: str) -> Mapping[str, Any]:
    """The JSON object that a browser sent. Raises ValueError."""
    found = json.loads(answer) if len(answer) <= _MAX_ANSWER_CHARS else None
    if isinstance(found, dict):
        return found
    raise ValueError("no JSON object")


def _handle(user: User) -> bytes:
    """What keys know the user by: nothing of the person (WebAuthn level 3, section 14.6.1)."""
    return salted_hmac("controlplane.factors.security_keys", str(user.pk), algorithm="sha256").digest()


def _digest(credential_id: bytes) -> str:
    return hashlib.sha256(credential_id).hexdigest()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

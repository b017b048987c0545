"""What an identity provider says of a person, and whether that can be believed. Pure: the time is the caller's."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from controlplane.config.oidc import MAX_GROUP_CHARS, MAX_SUBJECT_CHARS, GroupRole, Oidc

CLOCK_SKEW_S: Final = 30  # machines that keep their clocks differ by less
MAX_GROUPS: Final = 5_000
_MAX_TOKEN_CHARS: Final = 65_536
_MAX_NAME_CHARS: Final = 130  # the column's 150, less what is appended to one that is taken
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9@.+_-]+")


class Disbelieved(Exception):
    """What came in the identity provider's name is not believed. The text says why, without repeating a token."""


class KeyUnknown(Disbelieved):
    """A token is signed by a key that is not among those that are known: the provider may have a new one."""


def id_token_claims(
    token: object,
    *,
    keys: KeySet,
    algorithms: Collection[str],
    oidc: Oidc,
    now: float,
    nonce: str = "",
    access_token: str = "",
) -> Mapping[str, object]:
    """The claims of an id token, after its signature, issuer, audience, time and, where one was sent, nonce were
    checked (OpenID Connect Core 1.0 section 3.1.3.7). `now`: Unix time. Raises Disbelieved; KeyUnknown where another
    key might verify it.
    """
    if not isinstance(token, str) or not token or len(token) > _MAX_TOKEN_CHARS:
        raise Disbelieved("there is no id token")
    try:
        opened = jwt.decode(token, keys, algorithms=list(algorithms))
        # `validate` takes the option's dictionaries apart: new ones for each token.
        options = {
            "iss": {"essential": True, "value": oidc.issuer},
            "aud": {"essential": True, "value": oidc.client_id},
        }
        params = {"client_id": oidc.client_id, "nonce": nonce, "access_token": access_token}
        judged = CodeIDToken(opened.claims, opened.header, options, params)
        judged.validate(now=int(now), leeway=CLOCK_SKEW_S)
    except InvalidKeyIdError:
        raise KeyUnknown("the id token is signed by a key that the provider does not list") from None
    except BadSignatureError:
        raise KeyUnknown("the signature of the id token is wrong") from None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Disbelieved(f"the id token is refused: {error}") from None
    subject_of(judged)
    return dict(judged)


def subject_of(claims: Mapping[str, object]) -> str:
    """Whom the claims are about: the id that the provider never gives to somebody else. Raises Disbelieved."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or len(subject) > MAX_SUBJECT_CHARS or "\0" in subject:
        raise Disbelieved(f"its subject is no text of 1 to {MAX_SUBJECT_CHARS} characters")
    return subject


def proved_at(claims: Mapping[str, object]) -> float | None:
    """The Unix time at which the person last proved to the provider who they are (OpenID Connect Core 1.0 section 2,
    `auth_time`); None where the claims do not say.
    """
    found = claims.get("auth_time")
    return float(found) if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def groups_of(claims: Mapping[str, object], claim: str) -> frozenset[str] | None:
    """The groups that the claims list; None where they have no such claim, so that somebody else has to be asked. A
    single text is one group; what is no text is left out.
    """
    if claim not in claims:
        return None
    found = claims[claim]
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    texts = [each for each in listed[:MAX_GROUPS] if isinstance(each, str)]
    return frozenset(each for each in texts if each and len(each) <= MAX_GROUP_CHARS)


def roles_of(groups: Iterable[str], mapping: Iterable[GroupRole]) -> frozenset[GroupRole]:
    """The rows of the mapping that give somebody in these groups a role. Groups are compared letter by letter."""
    known = frozenset(groups)
    return frozenset(row for row in mapping if row.group in known)


def user_name(claims: Mapping[str, object], subject: str) -> str:
    """How to call somebody who is new, in letters that look like no others: the name that the provider prefers, else
    their address, else their subject. It only names them: nobody is recognised by it.
    """
    for found in (claims.get("preferred_username"), claims.get("email"), subject):
        if isinstance(found, str):
            plain = unicodedata.normalize("NFKD", found[:1_000]).encode("ascii", "ignore").decode()
            name = _NOT_IN_NAMES.sub("-", plain).strip("-")[:_MAX_NAME_CHARS]
            if name:
                return name
    return "somebody"

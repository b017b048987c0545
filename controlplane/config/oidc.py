"""Sign-in by OpenID Connect: what its variables hold, and how each is read.

Pure, and of the same form as `values`: a parser raises ValueError with the rest of a sentence that starts with the
variable's name.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from controlplane.common.limits import Limit, limit_of, limit_problem
from controlplane.common.roles import Role
from controlplane.config.values import any_of, words

MAX_ISSUER_CHARS: Final = 255  # the column
MAX_SUBJECT_CHARS: Final = 255  # OpenID Connect Core 1.0 section 2, `sub`
MAX_GROUP_CHARS: Final = 255  # the column
_MAX_GROUP_ROLES: Final = 500  # a variable is at most 128 KiB (Linux, MAX_ARG_STRLEN)
_MAX_CLAIM_CHARS: Final = 100
_MAX_NAME_CHARS: Final = 40  # what a button shows on one line of a phone
_MAX_CLIENT_ID_CHARS: Final = 255
# RFC 6749 section 3.3
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")
_ENVIRONMENT: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # `catalog.models.ENVIRONMENT_KEY_PATTERN`


class LocalSignIn(StrEnum):
    """Who may sign in with a name and a password of Parley's own while there is an identity provider."""

    EVERYBODY = "everybody"
    BREAK_GLASS = "break-glass"  # superusers whose account is Parley's own


@dataclass(frozen=True, slots=True)
class GroupRole:
    """The members of a group at the identity provider have this role. `environment`: its key; empty: all. `limit`: they
    have it on these resources only; None: on the environment as a whole.
    """

    group: str
    role: Role
    environment: str
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Oidc:
    """The identity provider, and what its word is good for. `client_secret`: empty for a public client. `name`: what
    people call the provider, on the button.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...]
    groups_claim: str
    roles: tuple[GroupRole, ...]
    name: str
    local_sign_in: LocalSignIn

    @property
    def plain(self) -> bool:
        """Whether the provider is reached without TLS, which only one on this machine is."""
        return self.issuer.startswith("http://")


def loopback(host: str) -> bool:
    """Whether a host's name or address is one of this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def issuer(text: str) -> str:
    """The text unchanged, if it can be an issuer: https, or http on loopback, without a question or fragment (OpenID
    Connect Discovery 1.0 section 3). Raises ValueError.
    """
    example = "must be the issuer's URL, for example https://id.example.org/realms/staff"
    try:
        url = urlsplit(text)
        _ = url.port  # raises when it is not a port
    except ValueError:
        raise ValueError(example) from None
    unfit = url.query or url.fragment or url.username is not None or "?" in text or "#" in text
    if url.scheme not in ("http", "https") or not url.hostname or unfit or not text.isprintable() or " " in text:
        raise ValueError(example)
    if url.scheme == "http" and not loopback(url.hostname):
        raise ValueError("must begin with https:// (http:// only for a provider on this machine)")
    if len(text) > MAX_ISSUER_CHARS:
        raise ValueError(f"must have at most {MAX_ISSUER_CHARS} characters")
    return text


def client_id(text: str) -> str:
    """The text unchanged, if it can be a client's id: visible ASCII (RFC 6749 appendix A.1). Raises ValueError."""
    if not (text.isascii() and text.isprintable() and len(text) <= _MAX_CLIENT_ID_CHARS):
        raise ValueError(f"must be the client's id at the provider, at most {_MAX_CLIENT_ID_CHARS} visible characters")
    return text


def client_secret(text: str) -> str:
    """The text unchanged, if it can be a client's secret: visible ASCII (RFC 6749 appendix A.2). Raises ValueError."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be the client's secret at the provider, in visible ASCII characters")
    return text


def scopes(text: str) -> tuple[str, ...]:
    """The scopes in a text, separated by blanks; `openid` is among them. Raises ValueError."""
    found = tuple(dict.fromkeys(text.split()))
    if "openid" not in found or not all(_SCOPE.fullmatch(each) for each in found):
        raise ValueError("must list scopes separated by blanks, openid among them")
    return found


def claim(text: str) -> str:
    """The text unchanged, if it can be a claim's name. Raises ValueError."""
    if not text.isprintable() or len(text) > _MAX_CLAIM_CHARS:
        raise ValueError(f"must be the name of a claim, at most {_MAX_CLAIM_CHARS} printable characters")
    return text


def name(text: str) -> str:
    """The text unchanged, if a button can show it. Raises ValueError."""
    if not text.isprintable() or len(text) > _MAX_NAME_CHARS:
        raise ValueError(f"must be one line of at most {_MAX_NAME_CHARS} printable characters")
    return text


def group_roles(text: str) -> tuple[GroupRole, ...]:
    """The roles of groups in a list such as `platform=admin, shop=editor@prod, pay=editor@prod/types:cluster+route/
    names:pay*`. Behind slashes stand limits: `owner:`, `types:` and `names:`, with a plus between several. A comma is
    written `%2C`, a percent sign `%25` and, in limits, a slash `%2F`, a plus `%2B` and an equals sign `%3D`. Raises
    ValueError.
    """
    found = tuple(_group_role(word) for word in words(text))
    if len(found) > _MAX_GROUP_ROLES:
        raise ValueError(f"must list at most {_MAX_GROUP_ROLES} roles of groups")
    return tuple(dict.fromkeys(found))


def _group_role(word: str) -> GroupRole:
    written, separator, right = word.rpartition("=")
    place, slash, limits = right.strip().partition("/")
    role_word, at, environment = place.partition("@")
    group = unquote(written.strip())
    roles = {role.value: role for role in Role}
    if not separator or not group or not group.isprintable() or len(group) > MAX_GROUP_CHARS:
        raise ValueError("must list GROUP=ROLE or GROUP=ROLE@ENVIRONMENT, separated by commas")
    if role_word not in roles:
        raise ValueError(f"must give each group a role: {any_of(list(roles))}")
    if at and not _ENVIRONMENT.fullmatch(environment):
        raise ValueError("must name an environment by its key behind @: lower case letters, digits and dashes")
    limit = _limit(limits) if slash else None
    if problem := limit_problem(roles[role_word], limit):
        raise ValueError(f"must not limit that role. {problem}")
    return GroupRole(group, roles[role_word], environment, limit)


def _limit(text: str) -> Limit | None:
    given: dict[str, list[str]] = {}
    for part in text.split("/"):
        key, colon, value = part.partition(":")
        if key not in ("owner", "types", "names") or not colon or key in given:
            raise ValueError("must limit a role by /owner:OWNER, /types:TYPE+TYPE, /names:NAME+NAME, each once")
        given[key] = [unquote(each) for each in (value.split("+") if key != "owner" else [value])]
    owner = given["owner"][0] if "owner" in given else None
    try:
        return limit_of(owner=owner, types=given.get("types"), names=given.get("names"))
    except ValueError as error:
        raise ValueError(f"must limit a role as limits are written. {error}") from None

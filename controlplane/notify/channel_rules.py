"""What a channel must be: everything that is wrong with one, each with where, before it is stored.

A host name passes here; its addresses are judged each time something is sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from controlplane.catalog.json_reading import Reader
from controlplane.config.values import WebhookAllow
from controlplane.notify.catalogue import OF_CHANNELS
from controlplane.notify.channel_kinds import Addressed, ChannelKind, Key, Manner
from controlplane.notify.schedules import DEFAULT, Schedule, schedule_read
from controlplane.outside.targets import TargetRefusedError, allowed_address, api_base, target_of
from xdscore.codes import shown
from xdscore.findings import Finding

MAX_NAME_CHARS: Final = 100
MAX_KEY_CHARS: Final = 500
MAX_ENVIRONMENTS: Final = 1_000
MAX_ENVIRONMENT_CHARS: Final = 63
_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A channel as somebody wants it.

    `target`: a URL or a mail address; empty for the one that its kind has, and, of a channel that is there, for the one
        it has.
    `environments` and `kinds`: the only ones of which it is told; empty: all.
    `secret`: the key that the receiver's service gave; empty where there is none and, of a channel that is there, for
        the one it has.
    `digest`: when its digests are due, as JSON; None for the default.
    """

    name: str
    kind: ChannelKind
    target: str
    environments: Sequence[str] = ()
    kinds: Sequence[str] = ()
    secret: str = ""
    digest: object = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A channel that somebody wants, and everything that is wrong with it. `target`: as it is stored; `schedule`: None
    for a kind without digests.
    """

    target: str
    schedule: Schedule | None
    findings: tuple[Finding, ...]


def channel_judge(wanted: NewChannel, *, allow: WebhookAllow, has_key: bool = False) -> Judged:
    """Judge a channel that somebody wants. `allow`: addresses that may be reached although they are not public;
    `has_key`: the key that its receiver's service gave is stored already.
    """
    facts, reader = wanted.kind.facts, Reader()
    if not wanted.name.strip() or len(wanted.name) > MAX_NAME_CHARS or not wanted.name.isprintable():
        reader.wrong("/name", f"A channel needs a name: one line of at most {MAX_NAME_CHARS} characters.")
    target = _target(wanted.target or facts.api, wanted.kind, allow, reader)
    if len(wanted.environments) > MAX_ENVIRONMENTS or any(
        len(each) > MAX_ENVIRONMENT_CHARS for each in wanted.environments
    ):
        reader.wrong("/environments", f"At most {MAX_ENVIRONMENTS} environments can be named; none means all of them.")
    for kind in sorted(set(wanted.kinds) - {*OF_CHANNELS}):
        hint = f"Kinds are: {', '.join(OF_CHANNELS)}."
        reader.wrong("/kinds", f"'{shown(kind, _SHOWN_CHARS)}' is no kind of notification.", hint)
    if facts.key is Key.GIVEN:
        _check_key(wanted.secret, facts.key_title, has_key, reader)
    elif wanted.secret:
        reader.wrong("/secret", f"A channel of the kind {wanted.kind.value} takes no key.")
    schedule: Schedule | None = None
    if facts.manner is Manner.DIGEST:
        schedule = schedule_read(reader.object(wanted.digest, "/digest")) if wanted.digest is not None else DEFAULT
    elif wanted.digest is not None:
        reader.wrong("/digest", f"A channel of the kind {wanted.kind.value} has no digests.")
    return Judged(target, schedule, tuple(reader.findings))


def _target(target: str, kind: ChannelKind, allow: WebhookAllow, reader: Reader) -> str:
    """The target as it is stored; what is wrong with it is noted."""
    if kind.facts.addressed is Addressed.MAIL:
        try:
            validate_email(target)
        except ValidationError:
            reader.wrong("/target", f"The target of a {kind.value} channel must be one mail address.")
        return target
    try:
        if kind.facts.addressed is Addressed.API:
            target = api_base(target)
        parts = target_of(target)
        address = _address_of(parts.host)
        if address is not None:
            allowed_address(parts, [parts.host], allow)
        listed = parts.host in allow.hosts or (address is not None and any(address in each for each in allow.networks))
        if kind.facts.key is Key.GIVEN and parts.scheme != "https" and not listed:
            reader.wrong("/target", "The URL must start with https://: whoever is on the way could read the key.")
    except TargetRefusedError as error:
        reader.wrong("/target", str(error))
    return target


def _check_key(secret: str, title: str, has_key: bool, reader: Reader) -> None:
    # It stands in a header, or in JSON: services make them of such characters.
    sound = secret.isascii() and secret.isprintable() and " " not in secret and len(secret) <= MAX_KEY_CHARS
    if not sound:
        reader.wrong("/secret", f"The {title} is at most {MAX_KEY_CHARS} letters, digits and signs, without blanks.")
    elif not secret and not has_key:
        hint = "Its service shows it. With another URL it has to be given again."
        reader.wrong("/secret", f"The {title} is missing.", hint)


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that the host of a URL is; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None

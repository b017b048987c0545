"""The settings of web, worker and management commands. Values come from `config`; this is wiring only."""

from urllib.parse import urlsplit

from controlplane.config import home
from controlplane.config.values import MailSecurity
from controlplane.database.aliases import databases
from controlplane.settings_base import *  # noqa: F403  a settings module is a namespace
from controlplane.settings_base import BASE_DIR, PARLEY, ROOMS_OF_ADS

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    *ROOMS_OF_ADS,
    "controlplane.builder",
    "controlplane.routecases",
    "controlplane.loss",
    "controlplane.factors",
    "controlplane.listing",
    "controlplane.incidents",
    "controlplane.discussion",
    "controlplane.changesets",
    "controlplane.rollouts",
    "controlplane.notify",
    "controlplane.invitations",
    "controlplane.explain",
    "controlplane.api",
    "controlplane.console",
]

MIDDLEWARE = [
    "controlplane.api.middleware.RequestMiddleware",  # first: even a refusal by the next ones has an id
    "controlplane.console.page_rates.AddressRate",  # before anything that somebody could keep busy
    "controlplane.api.strangers.StrangerRate",  # as for pages
    "controlplane.api.hosts.HostCheck",
    "controlplane.api.turns.TurnsMiddleware",  # before whatever takes a thread or a connection
    "controlplane.http.django_gates.Security",
    "controlplane.http.static_files.StaticFilesMiddleware",
    "controlplane.http.django_gates.Session",
    "controlplane.http.django_gates.Common",
    "controlplane.http.django_gates.Csrf",
    "controlplane.http.django_gates.Authentication",
    "controlplane.console.page_rates.PersonRate",  # as soon as it is known who asks
    "controlplane.http.django_gates.Messages",
    "controlplane.oidc.gates.SignInStands",  # it tells whose sign-in ended
    "controlplane.factors.gates.SecondFactorProved",  # it tells why, too
    "controlplane.http.browser_seen.BrowserSeen",  # whoever is signed in then, after the view too
    "controlplane.http.django_gates.FrameOptions",
]

ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
APPEND_SLASH = False  # a redirect would lose the body of a PUT; every path is written as it is

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "controlplane.console.context.console",
            ],
        },
    },
]

# --- Stores ---------------------------------------------------------------------------------------------------------

DATABASES = databases(PARLEY, pooled=True)
# In the process: no web request waits for Redis (law 4), and what is cached (throttles) may differ between processes.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

BROKER_URL = home.broker_url(PARLEY)
REDIS_CLIENT_URL = home.redis_client_url(BROKER_URL)

# --- People ---------------------------------------------------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"

# --- The edge: who may call us by which name, and what browsers are told ----------------------------------------------

# An address that means "every interface" is no name anybody calls; the public URL and this machine's names are.
ALLOWED_HOSTS = sorted(
    {"localhost", "127.0.0.1", "[::1]", str(urlsplit(PARLEY.public_url).hostname)}
    | ({PARLEY.web_address.host} if not PARLEY.web_address.unspecified else set())
)
CSRF_TRUSTED_ORIGINS = [PARLEY.public_url]

SESSION_COOKIE_SECURE = PARLEY.https
SESSION_COOKIE_AGE = 12 * 3600  # a working day
if PARLEY.https:
    # Names that browsers take only over TLS and for this very host: no neighbour can set them (RFC 6265bis).
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = PARLEY.https
CSRF_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_HSTS_SECONDS = 31_536_000 if PARLEY.https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = False  # other hosts of the domain are not ours to promise for
SECURE_HSTS_PRELOAD = False
# TLS ends at a proxy. Only a proxy we were told of can say that a request came over TLS, so only then can a request
# that did not be sent there; probes come without a proxy.
SECURE_SSL_REDIRECT = PARLEY.https and bool(PARLEY.trusted_proxies)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SILENCED_SYSTEM_CHECKS = [
    "security.W005", "security.W021",  # the two HSTS choices above
    # Of settings that follow from variables; `ops.checks` names those.
    "security.W004", "security.W008", "security.W010", "security.W016",
    # They look for the names of Django's middleware; ours are subclasses (`http.django_gates`), which a test checks.
    "security.W001", "security.W002", "security.W003",
]  # fmt: skip
DATA_UPLOAD_MAX_MEMORY_SIZE = PARLEY.limits.apply_bytes  # the API refuses smaller bodies by its own limits

STATIC_URL = "static/"
STATICFILES_DIRS = [path for path in (BASE_DIR / "static",) if path.is_dir()]
WHITENOISE_USE_FINDERS = True  # served from where the packages keep them: no collecting step, no second copy
WHITENOISE_AUTOREFRESH = False

# --- API ------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],  # denied unless a view says otherwise
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Parley",
    "DESCRIPTION": "An xDS control plane that says why.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "controlplane.api.schema_hooks.idempotency_described",
        "controlplane.api.schema_hooks.manifests_described",
        "controlplane.api.schema_hooks.retry_after_described",
        "controlplane.api.schema_hooks.stability_described",
        "controlplane.api.schema_hooks.examples_described",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",  # works offline, and under a strict content security policy
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- Mail -----------------------------------------------------------------------------------------------------------

EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
if PARLEY.mail is not None:
    EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
    EMAIL_HOST = PARLEY.mail.host
    EMAIL_PORT = PARLEY.mail.port
    EMAIL_HOST_USER = PARLEY.mail.user
    EMAIL_HOST_PASSWORD = PARLEY.mail.password
    EMAIL_USE_SSL = PARLEY.mail.security is MailSecurity.TLS
    EMAIL_USE_TLS = PARLEY.mail.security is MailSecurity.STARTTLS
    DEFAULT_FROM_EMAIL = SERVER_EMAIL = PARLEY.mail.sender

# --- Celery (reliability.md part (e); decisions D8, dependencies.md fact 16) ----------------------------------------

CELERY_BROKER_URL = BROKER_URL
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]  # a forged pickle would be code (threat 18)
CELERY_TASK_IGNORE_RESULT = True  # no result backend: the database has the results
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SOFT_TIME_LIMIT = PARLEY.limits.task_soft_s
CELERY_TASK_TIME_LIMIT = PARLEY.limits.task_hard_s
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_CONNECTION_TIMEOUT = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # the worker waits for the broker as long as it takes; the sweeper builds
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": PARLEY.limits.task_visibility_s,
    "socket_connect_timeout": 1,
    "socket_timeout": 1,
    "health_check_interval": PARLEY.limits.redis_health_check_s,
}
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True  # they are delivered again; builds are fenced
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"

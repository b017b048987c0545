"""`manage.py ads`: serves xDS, with the slim settings (manage.py chooses them)."""

import sys
from collections.abc import Callable

import django
from django.conf import settings
from django.core.management.base import BaseCommand

from adsserver.config import AdsConfig, TlsFiles
from adsserver.main import serve
from adsserver.ports import Directory
from adsserver.running.opener import Store
from controlplane.config.home import home_create
from controlplane.config.loading import Config
from controlplane.config.values import RepeatErrors
from controlplane.ops.process import unknown_variables_tell


class Command(BaseCommand):
    """Runs an ADS server."""

    help = "Serve xDS to data planes until SIGTERM or Ctrl-C."
    requires_system_checks = []  # they belong to `make check`; a start must be quick

    def handle(self, *_arguments: object, **_options: object) -> None:
        unknown_variables_tell()
        home_create(settings.PARLEY)
        sys.exit(serve(ads_config(settings.PARLEY), open_store))


def ads_config(config: Config) -> AdsConfig:
    """The part of Parley's configuration that the ADS server needs, in the server's own form."""
    tls = config.ads_tls
    return AdsConfig(
        address=str(config.ads_address),
        rest_address=str(config.rest_address) if config.rest_address is not None else "",
        metrics_address=str(config.metrics_address),
        home=config.home,
        public_url=config.public_url,
        workers=config.ads_workers,
        auth=config.ads_auth,
        tls=TlsFiles(tls.certificate, tls.key, tls.client_ca) if tls is not None else None,
        trust_domains=frozenset(config.trust_domains),
        repeat_errors=config.repeat_errors is RepeatErrors.FULL_STATE,
        limits=config.limits,
    )


def open_store(on_directory: Callable[[Directory], None]) -> Store:
    """Open the store of the ADS server within the process that uses it. Each worker process is a new interpreter in
    which Django was not set up yet. `on_directory` is called with each new directory of environments.
    """
    django.setup()
    # Not at the top: it needs models, and this module is how a worker's interpreter gets here.
    from adsserver.store import open_store as open_database_store  # noqa: PLC0415

    return open_database_store(on_directory)

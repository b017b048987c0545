"""How a serving process begins: with settings that can be used, or with one sentence and status 2, as `manage.py` does.

uvicorn and Celery would show a traceback of what their application raises.
"""

from typing import Final, NoReturn

from django.conf import settings

from controlplane.config.home import HomeError, home_create
from controlplane.config.loading import Config, ConfigError
from controlplane.logs.capture import say_last

EXIT_CANNOT_START: Final = 2


def settings_ready() -> Config:
    """The configuration that Django's settings hold. Ends the process, with a sentence, when it cannot be used."""
    try:
        config: Config = settings.PARLEY
    except (ConfigError, HomeError) as error:
        cannot_start(str(error))
    return config


def config_ready() -> Config:
    """Read the configuration and create its home directory. Ends the process, with a sentence, when either fails."""
    config = settings_ready()
    try:
        home_create(config)
    except HomeError as error:
        cannot_start(str(error))
    return config


def cannot_start(reason: str) -> NoReturn:
    """Log the reason why this process cannot start, and end it."""
    say_last(reason)
    raise SystemExit(EXIT_CANNOT_START)

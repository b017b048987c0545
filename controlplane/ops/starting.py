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
    """The configuration in the settings. Ends the process when it cannot be used."""
    try:
        config: Config = settings.PARLEY
    except (ConfigError, HomeError) as error:
        cannot_start(str(error))
    return config


def config_ready() -> Config:
    """The configuration, after its home was created. Ends the process when either cannot be had."""
    config = settings_ready()
    try:
        home_create(config)
    except HomeError as error:
        cannot_start(str(error))
    return config


def cannot_start(reason: str) -> NoReturn:
    """Log the reason and end the process."""
    say_last(reason)
    raise SystemExit(EXIT_CANNOT_START)

"""The five facts a person needs once Parley runs (interfaces.md section 1). Pure but for looking which files exist."""

import os
import shlex
from pathlib import Path

from controlplane.config.home import Home
from controlplane.config.loading import Config


def facts(config: Config, home: Home) -> str:
    """The lines that tell a person the console, password, API token, ADS address, and how to stop."""
    token = shlex.quote(_short(home.admin_token))
    lines = (
        ("Console", f"{config.public_url}  (user: admin)"),
        ("Password", _password(config, home)),
        ("API token", f'{_short(home.admin_token)}  (Authorization: Bearer "$(cat {token})")'),
        ("ADS", f"{config.ads_address}  ({_transport(config)})"),
        ("Stop", "Ctrl-C"),
    )
    return "\n".join(["", "Parley is ready.", *(f"  {name:<10} {text}" for name, text in lines), ""])


def _password(config: Config, home: Home) -> str:
    if config.admin_password:
        return "the one in PARLEY_ADMIN_PASSWORD when this home was made"
    if home.admin_password.exists():
        return _short(home.admin_password)
    return "the one that was chosen when this home was made"


def _transport(config: Config) -> str:
    tls = "TLS" if config.ads_tls is not None else "plaintext"
    return f"{tls}, client authentication: {config.ads_auth.value}"


def _short(file: Path) -> str:
    """The file's path, relative where that is shorter: what is printed is typed again in this directory."""
    relative = os.path.relpath(file)
    return relative if len(relative) < len(str(file)) else str(file)

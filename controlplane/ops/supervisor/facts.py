"""The five facts a person needs once Parley runs (interfaces.md section 1). Pure but for looking which files exist."""

import os
import shlex
from pathlib import Path

from controlplane.config.home import Home
from controlplane.config.loading import Config


def facts(config: Config, home: Home) -> str:
    """The lines that tell a person the console's URL, the password, the API token, the ADS address, and how to stop
    Parley.
    """
    token = shlex.quote(_short(home.admin_token))
    lines = (
        ("Console", f"{config.public_url}  (user: admin)"),
        ("Password", _password(config, home)),
        ("API token", f'{_short(home.admin_token)}  (Authorization: Bearer "$(cat {token})")'),
        ("ADS", f"{config.ads_address}  ({_transport(config)})"),
        ("Stop", "Ctrl-C"),
    )
    return "\n".join(["", "Parley is ready.", *(f"  {name:<10} {text}" for name, text in lines), ""])


def demo_begins(home: Home) -> str:
    """What is said when the demo begins, and where the lines of its processes go."""
    return f"The demo starts; its five results follow in some seconds. Logs: {_short(home.logs)}"


def look_next(config: Config, home: Home) -> str:
    """The lines that tell a person, once the demo has shown its results, where to look at each."""
    here = f"{config.public_url}/e/default"
    why = f"{config.public_url}/x?e=default&c=demo-guest&t=listener&n=echo.demo"
    token = f'XDSCTL_TOKEN="$(cat {shlex.quote(_short(home.admin_token))})"'
    lines = (
        ("Who is connected", f"{here}/clients", "xdsctl ps"),
        ("Why 4 is denied", why, "xdsctl explain demo-guest listener echo.demo"),
        ("What 5 led to", f"{here}/incidents", "xdsctl incidents list"),
    )
    told = [line for what, page, typed in lines for line in (f"  {what:<17} {page}", f"  {'':<17} {typed}")]
    begin = [
        "  To have xdsctl, in another terminal:",
        '    make xdsctl; export PATH="$PWD/.xdsctl/bin:$PATH"',
        f"    export XDSCTL_SERVER={config.public_url} {token}",
    ]
    return "\n".join(["Look next", *told, *begin, f"  Logs: {_short(home.logs)}", ""])


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
    """The path of the file, relative to the current directory where that is shorter, because people type it again
    there.
    """
    relative = os.path.relpath(file)
    return relative if len(relative) < len(str(file)) else str(file)

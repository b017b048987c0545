"""What can be refused before anything exists: one sentence each, all of them at once, and nothing created.

A port can still be taken between this check and its use; the process that wants it then says so in its log.
"""

import errno
import os
import socket
from pathlib import Path

from controlplane.config.home import Home
from controlplane.config.loading import Config
from controlplane.config.values import Address
from controlplane.ops.supervisor.locks import CHILDREN_WAIT_S, Held, children_gone, supervisor_absent
from controlplane.ops.supervisor.valkey import valkey_binary


class CannotStart(Exception):
    """Parley cannot start on this machine; the reasons are one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def preflight(config: Config) -> None:
    """Check whether Parley can start here. Raises CannotStart with every reason found."""
    problems = _home(config.home) or _other_run(Home(config.home))
    if not problems:
        problems = [*_ports(config), *_files(config), *_broker(config)]
    if problems:
        raise CannotStart(tuple(problems))


def _other_run(home: Home) -> list[str]:
    try:
        supervisor_absent(home)
    except Held as held:
        return [str(held)]
    except OSError as error:
        return [f"PARLEY_HOME {home.path} cannot be used: {_reason(error)}."]
    if not children_gone(home):
        return [f"Processes of an earlier run in PARLEY_HOME {home.path} have not ended after {CHILDREN_WAIT_S:g} s."]
    return []


def _ports(config: Config) -> list[str]:
    addresses = {
        "PARLEY_WEB_ADDRESS": config.web_address,
        "PARLEY_ADS_ADDRESS": config.ads_address,
        **({"PARLEY_ADS_REST_ADDRESS": config.rest_address} if config.rest_address is not None else {}),
        "PARLEY_ADS_METRICS_ADDRESS": config.metrics_address,
        "PARLEY_WEB_METRICS_ADDRESS": config.web_metrics_address,
        "PARLEY_WORKER_METRICS_ADDRESS": config.worker_metrics_address,
    }
    return [problem for name, address in addresses.items() for problem in _port(name, address)]


def _port(name: str, address: Address) -> list[str]:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        return [f"{name} {address} cannot be used: {_reason(error)}."]
    family, kind, protocol, _, target = found[0]
    with socket.socket(family, kind, protocol) as listener:
        # As the servers do: a connection that lingers after its end is no reason to refuse.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(target)
            listener.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return [
                    f"{name} {address} is in use by another program: stop that one, or set {name} to a free address."
                ]
            return [f"{name} {address} cannot be used: {_reason(error)}."]
    return []


def _home(path: Path) -> list[str]:
    """Why the home directory cannot be used: it is no directory we may write to, and none can be created. Empty when it
    can.
    """
    nearest = next(each for each in (path, *path.parents) if _there(each))
    if not nearest.is_dir():
        return [f"PARLEY_HOME {path} cannot be used: {nearest} is not a directory."]
    if not os.access(nearest, os.W_OK | os.X_OK):
        return [f"PARLEY_HOME {path} cannot be used: {nearest} is not writable."]
    return []


def _files(config: Config) -> list[str]:
    if config.ads_tls is None:
        return []
    files = {
        "PARLEY_ADS_TLS_CERT": config.ads_tls.certificate,
        "PARLEY_ADS_TLS_KEY": config.ads_tls.key,
        "PARLEY_ADS_TLS_CLIENT_CA": config.ads_tls.client_ca,
    }
    return [
        f"{name} {file} is not a file that can be read."
        for name, file in files.items()
        if file is not None and not (file.is_file() and os.access(file, os.R_OK))
    ]


def _broker(config: Config) -> list[str]:
    if config.embedded_valkey and valkey_binary() is None:
        return ["REDIS_URL is not set and the embedded Valkey has no program for this machine: set REDIS_URL."]
    return []


def _there(path: Path) -> bool:
    try:
        path.lstat()
    except PermissionError:
        return False  # a parent that may not be entered; that one is named
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

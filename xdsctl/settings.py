"""Which server, with which token, in which environment: options first, then variables, then the chosen context.

Contexts are kept in one JSON file that only its owner may read, because tokens stand in it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

from xdsctl.exits import UsageError

SERVER_VARIABLE = "XDSCTL_SERVER"
TOKEN_VARIABLE = "XDSCTL_TOKEN"  # noqa: S105 - the name of a variable
CACERT_VARIABLE = "XDSCTL_CACERT"
ENVIRONMENT_VARIABLE = "XDSCTL_ENVIRONMENT"
CONTEXT_VARIABLE = "XDSCTL_CONTEXT"
FILE_VARIABLE = "XDSCTL_CONFIG"
DEFAULT_ENVIRONMENT = "default"


@dataclass(frozen=True, slots=True)
class Context:
    """One server as its user knows it, with a token and an environment; what is empty was not given. Its repr leaves
    the token out.

    `cacert` is a file with the certificate authorities (CA) that sign the server's certificate, in place of those of
    the machine.
    """

    server: str = ""
    token: str = field(default="", repr=False)
    environment: str = ""
    cacert: str = ""

    def over(self, other: "Context") -> "Context":
        """A copy of this context, whose empty fields are taken from `other`."""
        return Context(
            self.server or other.server,
            self.token or other.token,
            self.environment or other.environment,
            self.cacert or other.cacert,
        )


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts by name. `current` is the name of the one in use; empty when none is."""

    current: str = ""
    by_name: Mapping[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """The context of this name. Raises UsageError when there is none."""
        try:
            return self.by_name[name]
        except KeyError:
            known = ", ".join(sorted(self.by_name)) or "none yet"
            raise UsageError(
                f"There is no context '{name}'. Known: {known}. Add one with 'xdsctl context set {name} --url URL'."
            ) from None

    def with_context(self, name: str, context: Context) -> "Contexts":
        """A copy in which `name` is this context; if there was none before, it is the one in use."""
        return Contexts(self.current or name, {**self.by_name, name: context})

    def using(self, name: str) -> "Contexts":
        """A copy in which the context of this name is in use. Raises UsageError when there is none."""
        self.named(name)
        return replace(self, current=name)

    def without(self, name: str) -> "Contexts":
        """A copy without the context of this name. Raises UsageError when there is none."""
        self.named(name)
        kept = {key: value for key, value in self.by_name.items() if key != name}
        return Contexts("" if self.current == name else self.current, kept)


def contexts_path(variables: Mapping[str, str] = os.environ) -> Path:
    """The file in which contexts are kept, by these environment variables."""
    named = variables.get(FILE_VARIABLE)
    if named:
        return Path(named)
    base = variables.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "xdsctl" / "contexts.json"


def contexts_read(path: Path) -> Contexts:
    """The contexts in the file; none when there is no file. Raises UsageError for a file that cannot be used."""
    try:
        data = json.loads(path.read_bytes())
        by_name = {str(name): Context(**values) for name, values in data["contexts"].items()}
        return Contexts(str(data["current"]), by_name)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise UsageError(f"The contexts in '{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"'{path}' is not a file of contexts. Mend or remove it; 'xdsctl context set' makes it."
        ) from error


def contexts_write(path: Path, contexts: Contexts) -> None:
    """Write the contexts to the file, replacing it in one step. Raises UsageError when it cannot be written."""
    body = {
        "current": contexts.current,
        # What is not said is left out: the xdsctl before knows fewer members.
        "contexts": {
            name: {key: value for key, value in asdict(context).items() if value}
            for name, context in sorted(contexts.by_name.items())
        },
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A temporary file is its owner's alone from the start.
        with NamedTemporaryFile("w", dir=path.parent, prefix=".contexts-", delete=False, encoding="utf-8") as file:
            json.dump(body, file, indent=2)
        Path(file.name).replace(path)
    except OSError as error:
        raise UsageError(f"The contexts cannot be written to '{path}': {error.strerror}.") from error


def context_chosen(options: Context, name: str, variables: Mapping[str, str] = os.environ) -> Context:
    """The context for one command: `options` win over environment variables, and these over the context that `name`
    (the option --context) or else the file chooses. Raises UsageError when no server is named.
    """
    said = Context(
        variables.get(SERVER_VARIABLE, ""),
        variables.get(TOKEN_VARIABLE, ""),
        variables.get(ENVIRONMENT_VARIABLE, ""),
        variables.get(CACERT_VARIABLE, ""),
    )
    known = contexts_read(contexts_path(variables))
    wanted = name or variables.get(CONTEXT_VARIABLE, "") or known.current
    chosen = options.over(said).over(known.named(wanted) if wanted else Context())
    if not chosen.server:
        raise UsageError(
            f"No server is named. Give --server, set {SERVER_VARIABLE}, or run 'xdsctl context set NAME --url URL'."
        )
    return replace(chosen, server=server_url(chosen.server), environment=chosen.environment or DEFAULT_ENVIRONMENT)


def server_url(text: str) -> str:
    """The address of a server without a slash or `/api/v1` at its end. Raises UsageError for anything but an HTTP or
    HTTPS URL.
    """
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"'{text}' is not the address of a server; write it like https://parley.example.")
    return text.rstrip("/").removesuffix("/api/v1")

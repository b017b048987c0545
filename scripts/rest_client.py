"""`python scripts/rest_client.py FOLDER`: make the wheel of the typed REST client in FOLDER, from the API's schema.

The package is made anew each time and never kept: what it says is what docs/reference/openapi.yaml says. The generator
lives in an environment of its own, which `make install-dev` makes (requirements-generator.in says why).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

_ROOT: Final = Path(__file__).parent.parent
_PROJECT: Final = _ROOT / "restclient"
_SCHEMA: Final = _ROOT / "docs" / "reference" / "openapi.yaml"
# Beside the environment that this runs in.
_GENERATOR: Final = Path(f"{Path(sys.prefix).resolve()}-generator", "bin", "openapi-python-client")
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
# How the names of the schema end that requests have, and answers have not.
_ASKED: Final = "In"


class ClientError(Exception):
    """Why there is no wheel; `str()` says it, and what to do."""


def main(arguments: list[str]) -> int:
    """Make the wheel and print its path; returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("Say a folder: python scripts/rest_client.py dist\n")
        return 2
    try:
        sys.stdout.write(f"{wheel_make(Path(arguments[0]))}\n")
    except ClientError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def wheel_make(folder: Path) -> Path:
    """Generate the client from the schema in this checkout, and build its wheel in `folder`, which is made where it is
    not there. Returns the wheel's path. Raises ClientError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as making:
        source = Path(making) / "source"
        shutil.copytree(_PROJECT, source)
        shutil.copy(_ROOT / "LICENSE", source)
        shutil.copy(_ROOT / "xdscore" / "version.py", source)
        package_generate(source)
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder.resolve())]
        _run(build, source)
    [wheel] = folder.glob("parley_client-*.whl")
    return wheel


def package_generate(folder: Path) -> None:
    """Generate the package `parley_client` in `folder`, with all operations but streams of events. Raises ClientError,
    also where the generator leaves out an operation because it does not understand it.
    """
    if not _GENERATOR.exists():
        raise ClientError(f"{_GENERATOR} is not there: run 'make install-dev'.")
    schema: dict[str, Any] = yaml.safe_load(_SCHEMA.read_text(encoding="utf-8"))
    for path in schema["paths"].values():
        for verb, operation in list(path.items()):
            body = operation.get("requestBody", {})
            if _JSON in body.get("content", {}):
                # Every body that may be YAML may be JSON, which is what the generator knows.
                body["content"] = {_JSON: body["content"][_JSON]}
            if _EVENTS in operation["responses"].get("200", {}).get("content", {}):
                # Its functions answer once all is read, which for a stream of events is too late.
                del path[verb]
    for name, shape in schema["components"]["schemas"].items():
        if not name.endswith(_ASKED):
            _open(shape)
    text = folder / "openapi.yaml"
    text.write_text(yaml.safe_dump(schema, sort_keys=False, allow_unicode=True), encoding="utf-8")
    options = ("--path", text.name, "--config", "generator.yaml", "--meta", "none", "--fail-on-warning")
    _run([str(_GENERATOR), "generate", *options, "--output-path", "parley_client"], folder)
    text.unlink()
    (folder / "parley_client" / "py.typed").touch()


def _open(shape: Any) -> None:
    """Let a text in an answer be any text. A client that knows today's words alone could not read an answer of a later
    server that has one more.
    """
    match shape:
        case {"enum": [str(), *_]}:
            del shape["enum"]
    for part in shape.values() if isinstance(shape, dict) else shape if isinstance(shape, list) else ():
        _open(part)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  our own words
    if done.returncode != 0:
        raise ClientError(f"'{' '.join(command[:2])}' ended with status {done.returncode}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Report the licences of what is locked, and its known vulnerabilities: `audit.py [LOCK …]`.

Licences are read from the packages of this environment, which `make install-dev` fills from the locks. Vulnerabilities
are asked for at OSV (https://osv.dev), by name and version. Exit status: 0 when all is well, 1 when a licence is not
allowed or unknown, or a vulnerability is known; 3 when nothing of that was found but not all could be looked at.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

LOCKS: Final = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-deep.txt",
    "requirements-generator.txt",
    "requirements-xdsctl.txt",
    "deploy/docker/requirements-uv.txt",
)
OSV: Final = "https://api.osv.dev/v1/querybatch"  # google.github.io/osv.dev documents it
_TIMEOUT_S: Final = 20.0
_MAX_ANSWER_BYTES: Final = 50_000_000

# What may be used and passed on beside Apache-2.0 without duties for Parley's own code; libraries under the weak
# copyleft of LGPL and MPL are used as they are.
ALLOWED: Final = frozenset(
    {
        "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "MIT", "MIT-0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC",
        "PSF-2.0", "MPL-2.0", "LGPL-3.0-only",
    }
)  # fmt: skip
# Words of older packages, in the terms of SPDX.
_WORDS: Final = {
    "apache software license": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "mit license": "MIT",
    "bsd license": "BSD",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}
# What their own LICENSE file says: of packages whose metadata says nothing, and of those that are for other machines.
READ: Final = {
    "atheris": "Apache-2.0",
    "axe-playwright-python": "MIT",
    "promql-parser": "MIT",
    "async-timeout": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "openapi-python-client": "MIT",
    "ruamel-yaml": "MIT",
    "pyyaml-ft": "MIT",
    "tzdata": "Apache-2.0",
}
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Package:
    """A package and its version, as they stand in a lock file."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one check. `lines`: to print; `wrong`: whether something is wrong; `unseen`: whether something
    could not be checked.
    """

    lines: tuple[str, ...]
    wrong: bool
    unseen: bool


def locked(locks: Iterable[Path]) -> tuple[Package, ...]:
    """Every package in the lock files, sorted by name."""
    found = {
        Package(*pair)
        for lock in locks
        for pair in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    }
    return tuple(sorted(found, key=lambda each: (each.name, each.version)))


def licence_of(name: str) -> str | None:
    """The licence that the installed package states, as an SPDX expression; else the one in `READ`, which a person
    looked up; None when neither tells.
    """
    try:
        stated = distribution(name).metadata
    except PackageNotFoundError:
        return READ.get(name)
    if "License-Expression" in stated:
        return str(stated["License-Expression"])
    classified = [
        each.rpartition("::")[2].strip() for each in stated.get_all("Classifier") or () if "License ::" in each
    ]
    words = [each for each in classified if each.lower() in _WORDS] or [
        str(stated["License"] or "").strip() if "License" in stated else ""
    ]
    said = " OR ".join(" OR ".join(_WORDS.get(part.lower(), part) for part in each.split(" OR ")) for each in words)
    return said or READ.get(name, UNKNOWN)


def is_allowed(expression: str) -> bool:
    """Whether at least one alternative of a licence expression consists of allowed licences only. False for an
    expression with parentheses, which a person has to read.
    """
    if expression.startswith("(") and expression.endswith(")"):
        expression = expression[1:-1]
    if "(" in expression or ")" in expression:
        return False
    return any(
        all(part.strip() in ALLOWED for part in alternative.split(" AND ")) for alternative in expression.split(" OR ")
    )


def licences(packages: Sequence[Package], stated: Mapping[str, str | None]) -> Found:
    """Check the licences of these packages: a table of them, and those that are not allowed. `stated`: the licence that
    each states, by name.
    """
    lines, refused, absent = [], [], []
    for each in packages:
        licence = stated[each.name]
        if licence is None:
            absent.append(each.name)
            continue
        lines.append(f"{each.name:<40}{each.version:<16}{licence}")
        if not is_allowed(licence):
            refused.append(f"{each.name}: '{licence}' is not among the licences that are allowed (scripts/audit.py).")
    if absent:
        lines.append(f"Not installed here, so their licences were not read: {', '.join(absent)}.")
    return Found((*lines, *refused), bool(refused), bool(absent))


def vulnerabilities(packages: Sequence[Package], url: str = OSV) -> Found:
    """Check these versions for known vulnerabilities, by asking the database at `url`. Where that does not answer, the
    result says that nothing could be seen.
    """
    asked = {
        "queries": [{"package": {"name": each.name, "ecosystem": "PyPI"}, "version": each.version} for each in packages]
    }
    request = urllib.request.Request(  # noqa: S310 - an address of this file
        url, json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - as above
            told = [
                [str(known["id"]) for known in each.get("vulns", ())]
                for each in json.loads(answer.read(_MAX_ANSWER_BYTES))["results"]
            ]
        if len(told) != len(packages):
            raise ValueError(f"{len(told)} answers to {len(packages)} questions")  # noqa: TRY301 - as any bad answer
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Found(
            (
                f"Known vulnerabilities were NOT looked up: {url} cannot be asked ({error}).",
                "Run `make audit` where it can be reached.",
            ),
            wrong=False,
            unseen=True,
        )
    lines = [f"{each.name} {each.version}: {', '.join(ids)}" for each, ids in zip(packages, told, strict=True) if ids]
    return Found(
        (*lines, f"Known vulnerabilities in {len(packages)} packages: {len(lines)} have some."),
        bool(lines),
        unseen=False,
    )


def status(found: Iterable[Found]) -> int:
    """The exit status that follows from these results: that for something wrong comes before that for something not
    checked.
    """
    every = list(found)
    if any(each.wrong for each in every):
        return 1
    return 3 if any(each.unseen for each in every) else 0


def main(locks: Sequence[str]) -> int:
    """Check the packages in these lock files and print the report; returns the exit status."""
    packages = locked(Path(each) for each in locks or LOCKS)
    found = (
        licences(packages, {each.name: licence_of(each.name) for each in packages}),
        vulnerabilities(packages),
    )
    for each in found:
        sys.stdout.write("\n".join(each.lines) + "\n\n")
    return status(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

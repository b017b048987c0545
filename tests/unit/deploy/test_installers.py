"""Whatever installs a package, installs it by hash: a name alone is whatever the index holds today."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INSTALLERS = [
    "Makefile",
    "Dockerfile",
    "docker-compose.yml",
    *(str(each.relative_to(ROOT)) for each in ROOT.glob("scripts/*.sh")),
]
INSTALLERS += sorted(
    str(each.relative_to(ROOT)) for each in (ROOT / "deploy").rglob("*.*") if each.suffix in {".sh", ".yaml", ".yml"}
)
# What a pipeline that is copied installs is its owner's to say: $XDSCTL_PACKAGE.
OWNED = ("pipx install", '"$XDSCTL_PACKAGE"')


def installs(text: str) -> Iterator[str]:
    """Each command that installs a package, continued lines joined, comments left out."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))
    for line in joined.splitlines():
        yield from (
            each for each in re.split(r"&&|\|\||;", line) if re.search(r"\bpipx? install\b|\buv (add|tool)\b", each)
        )


@pytest.mark.parametrize("file", INSTALLERS)
def test_installer__of_any_package__asks_for_its_hash(file: str) -> None:
    found = [
        each.strip()
        for each in installs((ROOT / file).read_text(encoding="utf-8"))
        if not any(owned in each for owned in OWNED)
    ]

    assert [each for each in found if "--require-hashes" not in each] == []


def test_installs__are_found_where_they_are() -> None:
    assert [
        len(list(installs((ROOT / file).read_text(encoding="utf-8")))) for file in ("scripts/install.sh", "Dockerfile")
    ] == [3, 2]
    assert list(installs("a && pip install --quiet \\\n   uv || b\n# pip install c")) == [" pip install --quiet  uv "]


@pytest.mark.parametrize(
    "lock",
    sorted(
        str(each.relative_to(ROOT))
        for each in [*ROOT.glob("requirements*.txt"), *ROOT.glob("deploy/docker/requirements*.txt")]
    ),
)
def test_lock__every_package__has_one_version_and_a_hash(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    assert [line for line in lines if "==" not in line or "--hash=sha256:" not in line] == []

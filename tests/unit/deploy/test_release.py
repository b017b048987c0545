"""`make release` in a repository of its own, with real git: what it refuses, what it makes, and what it leaves behind.

The repository has the files of this checkout that a release reads; `make check` and the API's schema, which other tests
look at, are said to be good or bad by the test.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts.dockerfile_steps import context_files

ROOT = Path(__file__).parents[3]
MANAGE = """import pathlib, sys
pathlib.Path(sys.argv[-1]).write_text(pathlib.Path("schema").read_text())
"""
MAKEFILE = "check:\n\t@test ! -e bad || { echo 'one test is red'; exit 1; }\n"
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n* Something new.\n"
WHOLE = {"LICENSE", "requirements.txt", "deploy", "xdsclient", "xdscore", "xdsctl"}
CLIENT = ("restclient/README.md", "restclient/generator.yaml", "restclient/pyproject.toml", "scripts/rest_client.py")
SCHEMA = """openapi: 3.1.1
info: {title: Parley, version: '1'}
paths:
  /api/v1/whoami:
    get: {operationId: whoami, tags: [whoami], responses: {'204': {description: ''}}}
components: {schemas: {}}
"""
FIRST, SECOND = "0.1.0", "0.2.0"


@dataclass
class Checkout:
    """A repository, and how to release from it."""

    root: Path

    def git(self, *arguments: str) -> str:
        return _run(self.root, "git", *arguments).stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str = "more") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def release(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return _run(self.root, sys.executable, "-m", "scripts.release", *arguments, check=False)

    def version(self, commit: str) -> str:
        (line,) = [each for each in self.git("show", f"{commit}:xdscore/version.py").splitlines() if "VERSION:" in each]
        return line.split('"')[1]

    def state(self) -> tuple[str, ...]:
        """All that a release may change."""
        dist = self.root / "dist"
        files = sorted(str(each.relative_to(dist)) for each in dist.rglob("*")) if dist.exists() else ["none"]
        return (self.git("status", "--porcelain"), self.git("for-each-ref"), self.git("worktree", "list"), *files)


def _run(folder: Path, *command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    me = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    me |= {f"GIT_{who}_{what}": "me@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(command, cwd=folder, env=clean | me, capture_output=True, text=True, check=check, timeout=60)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("release") / "template"
    # Of most folders one file stands for all: each test has the repository once more.
    shipped = [str(each) for each in context_files(ROOT) if each.parts[0] in WHOLE or each.name == "__init__.py"]
    others = [".gitignore", ".gitattributes", ".dockerignore", "Dockerfile", "deploy/kubernetes/kustomization.yaml"]
    for name in (*shipped, *others, *CLIENT, "scripts/__init__.py", "scripts/release.py", "scripts/changelog.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    checkout = Checkout(root)
    texts = {
        "CHANGELOG.md": CHANGELOG,
        "Makefile": MAKEFILE,
        "manage.py": MANAGE,
        "static/page.css": "",
        "templates/page.html": "",
    }
    for name, text in {**texts, "schema": SCHEMA, "docs/reference/openapi.yaml": SCHEMA}.items():
        checkout.write(name, text)
    checkout.git("init", "--quiet", "--template=", "--initial-branch", "main")
    checkout.commit("begin")
    return root


@pytest.fixture
def checkout(template: Path, tmp_path: Path) -> Checkout:
    shutil.copytree(template, tmp_path / "parley", symlinks=True)
    return Checkout(tmp_path / "parley")


def test_release__nothing_against_it__tags_builds_and_begins_the_next_version(
    checkout: Checkout, tmp_path: Path
) -> None:
    before = checkout.git("rev-parse", "HEAD")

    said = checkout.release(FIRST)

    assert said.returncode == 0, said.stdout + said.stderr
    tagged = checkout.git("rev-parse", "v0.1.0^{}")
    assert checkout.git("cat-file", "-t", "v0.1.0") == "tag"
    assert checkout.git("for-each-ref", "--format=%(contents)", "refs/tags/v0.1.0").splitlines()[:3] == [
        "Parley 0.1.0",
        "",
        "### Added",
    ]
    assert [checkout.git("rev-parse", each) for each in ("main~1", "main~2")] == [tagged, before]
    assert (checkout.version(tagged), checkout.version("main")) == (FIRST, "0.1.1-dev")
    assert (checkout.git("status", "--porcelain"), checkout.git("branch", "--show-current")) == ("", "main")
    today = datetime.now(UTC).date().isoformat()
    assert (
        f"## Unreleased\n\n## 0.1.0 - {today}\n\n### Added\n\n* Something new.\n"
        in (checkout.root / "CHANGELOG.md").read_text()
    )
    assert '    newTag: "0.1.0"\n' in (checkout.root / "deploy/kubernetes/kustomization.yaml").read_text()
    assert "git push --atomic origin main v0.1.0" in said.stdout

    dist = checkout.root / "dist" / FIRST
    context = dist / "parley-0.1.0-context.tar.gz"
    wheel, *others = (dist / f"{name}-0.1.0-py3-none-any.whl" for name in ("xdsctl", "xdsclient", "parley_client"))
    sums = {line.split("  ")[1]: line.split("  ")[0] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert sums == {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (context, wheel, *others)}
    unpacked = tmp_path / "context"
    shutil.unpack_archive(context, unpacked)
    assert {str(each) for each in context_files(unpacked)} == {str(each) for each in context_files(checkout.root)}
    assert (unpacked / "Dockerfile").exists()
    assert (unpacked / "xdscore/commit.txt").read_text().strip() == tagged
    shutil.unpack_archive(wheel, tmp_path / "wheel", "zip")
    told = _run(tmp_path / "wheel", sys.executable, "-m", "xdsctl", "--version")
    assert told.stdout == f"xdsctl 0.1.0+{tagged[:12]}\n"


def _dirty(checkout: Checkout) -> None:
    checkout.write("stray", "")


def _elsewhere(checkout: Checkout) -> None:
    checkout.git("switch", "--quiet", "--create", "other")


def _committed(path: str, text: str) -> Callable[[Checkout], None]:
    def spoil(checkout: Checkout) -> None:
        checkout.write(path, text)
        checkout.commit()

    return spoil


AGAINST = (
    (_dirty, "The checkout has 1 changes that are not committed: ?? stray."),
    (_elsewhere, "'other' is checked out; releases are made from 'main'."),
    (_committed("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n### Added\n"), "CHANGELOG.md has nothing under"),
    (_committed("docs/reference/openapi.yaml", "old"), "docs/reference/openapi.yaml is not what the code says"),
    (_committed("bad", ""), "`make check` fails:\n    one test is red"),
)


def test_release__everything_against_it__says_all_at_once_and_changes_nothing(checkout: Checkout) -> None:
    for spoil, _ in reversed(AGAINST):
        spoil(checkout)
    checkout.git("tag", "v0.3.0")
    before = checkout.state()

    said = checkout.release(FIRST)

    assert said.returncode == 1
    assert [sentence for _, sentence in AGAINST if f"* {sentence}" not in said.stdout] == []
    assert "0.1.0 does not follow 0.3.0, the last release: 0.3.1, 0.4.0, 1.0.0 would." in said.stdout
    assert f"{len(AGAINST) + 1} things are against it. Nothing was changed." in said.stdout
    assert checkout.state() == before


def test_release__older_than_the_checkout_calls_itself__is_refused(checkout: Checkout) -> None:
    said = checkout.release("0.0.9")

    assert said.returncode == 1
    assert "0.0.9 comes before 0.1.0-dev, which this checkout calls itself" in said.stdout


@pytest.mark.parametrize("version", ["1", "0.1.0-dev", "v0.1.0", "0.1.0+abc", "01.0.0", "0.1.0 "])
def test_release__what_is_no_version__is_wrong_usage(template: Path, version: str) -> None:
    said = Checkout(template).release(version)

    assert said.returncode == 2
    assert "such as 0.2.0" in said.stderr


def test_release__dry_run__looks_and_builds_and_changes_nothing(checkout: Checkout) -> None:
    before = checkout.state()

    said = checkout.release(FIRST, "--dry-run")

    assert (said.returncode, checkout.state()) == (0, before)
    assert "xdsctl-0.1.0-py3-none-any.whl" in said.stdout
    assert "Nothing was changed." in said.stdout


@pytest.mark.parametrize(
    ("path", "text", "said_of_it"),
    [
        # What stops it while it builds, when it tags, and when main shall go on.
        ("xdsctl/pyproject.toml", "nonsense", "hatchling"),
        (".git/refs/tags/v0.1.0.lock", "", "`git tag"),
        (".git/index.lock", "", "`git merge"),
    ],
)
def test_release__a_step_fails__leaves_nothing_behind(
    checkout: Checkout, path: str, text: str, said_of_it: str
) -> None:
    checkout.write(path, text)
    if not path.startswith(".git/"):
        checkout.commit()
    before = checkout.state()

    said = checkout.release(FIRST)

    assert (said.returncode, checkout.state()) == (1, before)
    assert said_of_it in said.stdout
    assert "Nothing was released." in said.stdout


def test_release__said_again__changes_nothing_and_makes_lost_files_again(checkout: Checkout) -> None:
    assert checkout.release(FIRST).returncode == 0
    released, wheel = checkout.state(), checkout.root / "dist/0.1.0/xdsctl-0.1.0-py3-none-any.whl"
    made = wheel.read_bytes()

    again = checkout.release(FIRST)
    after_again = checkout.state()
    shutil.rmtree(checkout.root / "dist")
    without_files = checkout.release(FIRST)

    assert (again.returncode, without_files.returncode) == (0, 0)
    assert (after_again, checkout.state(), wheel.read_bytes()) == (released, released, made)


def test_release__was_killed_between_tag_and_main__the_same_command_does_the_rest(checkout: Checkout) -> None:
    assert checkout.release(FIRST).returncode == 0
    checkout.git("reset", "--quiet", "--hard", "v0.1.0~1")

    said = checkout.release(FIRST)

    assert said.returncode == 0, said.stdout
    assert checkout.git("rev-parse", "main~1") == checkout.git("rev-parse", "v0.1.0^{}")
    assert checkout.version("main") == "0.1.1-dev"
    assert checkout.git("status", "--porcelain") == ""


def test_release__tag_of_another_history__is_refused(checkout: Checkout) -> None:
    assert checkout.release(FIRST).returncode == 0
    checkout.git("reset", "--quiet", "--hard", "v0.1.0~1")
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "elsewhere")
    before = checkout.state()

    said = checkout.release(FIRST)

    assert (said.returncode, checkout.state()) == (1, before)
    assert "main goes another way than it" in said.stdout


def test_release__second_one__has_a_section_of_its_own(checkout: Checkout) -> None:
    assert checkout.release(FIRST).returncode == 0
    text = (checkout.root / "CHANGELOG.md").read_text()
    empty, skips = checkout.release(SECOND), checkout.release("0.3.0")
    checkout.write("CHANGELOG.md", text.replace("## Unreleased\n", "## Unreleased\n\n### Fixed\n\n* A fault.\n"))
    checkout.commit()

    second = checkout.release(SECOND)

    assert (empty.returncode, second.returncode) == (1, 0), second.stdout
    assert "0.3.0 does not follow 0.1.0, the last release: 0.1.1, 0.2.0, 1.0.0 would." in skips.stdout
    lines = [line for line in (checkout.root / "CHANGELOG.md").read_text().splitlines() if line]
    assert [line[:9] for line in lines if line.startswith(("## ", "*"))] == [
        "## Unrele",
        "## 0.2.0 ",
        "* A fault",
        "## 0.1.0 ",
        "* Somethi",
    ]
    assert checkout.git("log", "--format=%s", "-4").splitlines() == [
        "After 0.2.0: this is 0.2.1-dev",
        "Release 0.2.0",
        "more",
        "After 0.1.0: this is 0.1.1-dev",
    ]

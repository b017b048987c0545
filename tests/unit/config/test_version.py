"""The version: what is one, which may run side by side, which build this is, and that it stands in one place only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.version_before import commit_before, commit_without
from xdscore.build import BUILD_VERSION, COMMIT, build_info, commit_in
from xdscore.version import VERSION, Version, side_by_side

ROOT = Path(__file__).parents[3]
HASH = "8d8d2a0c11e4" + 28 * "0"


@pytest.mark.parametrize("text", ["0.1.0", "0.2.0-dev", "12.0.7"])
def test_version__parsed__is_written_the_same(text: str) -> None:
    assert str(Version.parse(text)) == text


def test_version__with_the_commit_of_a_build__is_that_version() -> None:
    assert Version.parse(f"0.2.0-dev+{HASH[:12]}") == Version.parse("0.2.0-dev")


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "01.2.3", "1.2.3-rc.1", "1.2.3\n", "\u0661.2.3"]
)
def test_version__anything_else__is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version: write three numbers"):
        Version.parse(text)


def test_versions__sorted__are_in_the_order_of_their_release() -> None:
    in_order = ["0.1.0-dev", "0.1.0", "0.1.1-dev", "0.2.0-dev", "0.2.0", "0.10.0", "1.0.0"]

    assert [str(each) for each in sorted(map(Version.parse, reversed(in_order)))] == in_order


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("0.1.0", "0.1.0", True),
        ("0.1.0", "0.1.9-dev", True),
        ("0.1.9", "0.2.0", True),
        ("1.4.2", "1.3.0", True),
        ("0.1.0", "0.3.0", False),
        ("0.9.0", "1.0.0", True),
        ("0.9.0", "1.1.0", False),
        ("1.0.0", "3.0.0", False),
    ],
)
def test_versions__neighbours__may_run_side_by_side(one: str, other: str, may: bool) -> None:
    versions = Version.parse(one), Version.parse(other)

    assert (side_by_side(*versions), side_by_side(*reversed(versions))) == (may, may)


def test_version__of_this_checkout__stands_in_one_place_only() -> None:
    assert str(Version.parse(VERSION)) == VERSION
    packages = ("adsserver", "controlplane", "xdsclient", "xdscore", "xdsctl")
    said = re.compile(rf"\b__version__\b|['\"]{re.escape(VERSION)}['\"]")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]

    found = [str(file.relative_to(ROOT)) for file in files if said.search(file.read_text())]

    assert found == ["xdscore/version.py"]


def test_version__read__needs_no_framework() -> None:
    look = "import sys, xdscore.build; print(sorted({n.partition('.')[0] for n in sys.modules} & {'django', 'grpc'}))"

    assert subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, check=True).stdout == b"[]\n"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout: git knows nothing of it")
def test_commit__of_this_checkout__is_what_git_says() -> None:
    said = _git(ROOT, "rev-parse", "HEAD")

    assert said == COMMIT
    assert f"{VERSION}+{COMMIT[:12]}" == BUILD_VERSION


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With one commit on a branch whose name has a slash."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch", "work/main")
    _commit(folder, "one")
    return folder


def test_commit__of_a_branch_packed_or_loose__is_what_git_says(repository: Path, tmp_path: Path) -> None:
    loose = commit_in(tmp_path / "none", repository)
    _git(repository, "pack-refs", "--all")

    assert [loose, commit_in(tmp_path / "none", repository)] == 2 * [_git(repository, "rev-parse", "HEAD")]


def test_commit__of_another_work_tree_or_none_of_a_branch__is_what_git_says(repository: Path, tmp_path: Path) -> None:
    first = _git(repository, "rev-parse", "HEAD")
    _git(repository, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    second = _commit(tmp_path / "other", "two")
    _git(repository, "checkout", "--quiet", "--detach")

    assert [commit_in(tmp_path / "none", each) for each in (repository, tmp_path / "other")] == [first, second]


def test_commit__named_by_the_file_of_an_archive__is_that_one(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "commit.txt").write_text(f"{HASH}\n")

    assert commit_in(tmp_path / "commit.txt", repository) == HASH


@pytest.mark.parametrize("head", [None, "", "ref: refs/heads/none", "ref: ../../../etc/passwd", 'x"} 1\n', "é" * 40])
def test_commit__nobody_knows_it__is_empty(tmp_path: Path, head: str | None) -> None:
    if head is not None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git/HEAD").write_text(head)
    (tmp_path / "commit.txt").write_text("$Format:%H$\n")

    assert commit_in(tmp_path / "commit.txt", tmp_path) == ""


def test_build_info__of_a_role__is_one_sample_with_its_labels() -> None:
    (family,) = text_string_to_metric_families(build_info("worker").decode())
    (sample,) = family.samples

    assert (sample.name, sample.value) == ("parley_build_info", 1.0)
    assert sample.labels == {
        "version": VERSION,
        "commit": COMMIT,
        "python": ".".join(map(str, sys.version_info[:3])),
        "role": "worker",
    }


def test_version_before__nothing_released__does_not_know_the_newest_migration(repository: Path) -> None:
    before = _git(repository, "rev-parse", "HEAD")
    _commit(repository, "migrates", "controlplane/catalog/migrations/0001_initial.py")
    _commit(repository, "later")

    assert commit_before(repository) == before
    assert commit_without(repository, "controlplane/none.py") == ""


def test_version_before__something_released__is_the_last_release(repository: Path) -> None:
    first = _git(repository, "rev-parse", "HEAD")
    _git(repository, "tag", "--annotate", "-m", "first", "v0.1.0")
    _git(repository, "tag", "--annotate", "-m", "no release", "validated")
    after_first = _commit(repository, "migrates", "controlplane/catalog/migrations/0001_initial.py")
    found_after = commit_before(repository)
    _git(repository, "tag", "--annotate", "-m", "second", "v0.2.0")

    assert after_first != first
    # A commit that is a release has the one before it before itself.
    assert (found_after, commit_before(repository)) == (first, first)


def _commit(folder: Path, message: str, path: str = "file") -> str:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(message)
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    me = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    said = subprocess.run(["git", *me, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return said.stdout.strip()

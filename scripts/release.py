"""Release a version from this checkout: `release.py VERSION [--dry-run]`; `make release` calls it.

It looks at everything first and says all that is against the release. Then it makes two commits on top of main, one
with the version and the changelog's section, which the tag names, and one that begins the next version; and from the
first one the wheels of xdsctl, xdsclient and the REST client, and the context for `docker build`, in `dist/VERSION`. It
pushes nothing.

The commits are made without touching the checkout, so that whatever fails before the tag leaves everything as it was.
When it was killed between the tag and the end, or the files are lost, the same command does the rest.

Exit status: 0 when released, 1 when something is against it or failed, 2 for wrong usage.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from scripts.changelog import ChangelogError, released, unreleased
from xdscore.version import VERSION, Version

BRANCH: Final = "main"

_ROOT: Final = Path(__file__).resolve().parents[1]
_VERSION_FILE: Final = "xdscore/version.py"
_CHANGELOG: Final = "CHANGELOG.md"
_KUSTOMIZATION: Final = "deploy/kubernetes/kustomization.yaml"
_SCHEMA: Final = "docs/reference/openapi.yaml"
# Lines that hold the version: each stands in its file once.
_LINES: Final = {
    _VERSION_FILE: (re.compile(r'^VERSION: Final = ".*"$', re.MULTILINE), 'VERSION: Final = "{}"'),
    _KUSTOMIZATION: (re.compile(r"^    newTag: .*$", re.MULTILINE), '    newTag: "{}"'),
}
_DOCKERFILE: Final = "Dockerfile"
_DOCKERIGNORE: Final = ".dockerignore"
_SUMS: Final = "SHA256SUMS"
_WHEELS: Final = ("parley_client", "xdsclient", "xdsctl")
# What they are made of.
_PACKED: Final = ("LICENSE", _SCHEMA, "restclient", "scripts/rest_client.py", "xdsclient", "xdscore", "xdsctl")
# What `make release` tells its children is not meant for the `make check` below.
_OF_MAKE: Final = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


class ReleaseError(Exception):
    """A step of a release failed; the text says why. Nothing was released."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release that is to be made. `head`: the commit that is checked out; `tagged`: the commit of the release's tag,
    empty where there is no tag yet.
    """

    version: Version
    head: str
    tagged: str  # the commit of its tag; empty as long as it is not released

    @property
    def tag(self) -> str:
        """The name of the release's git tag."""
        return f"v{self.version}"

    @property
    def folder(self) -> Path:
        """The folder in which the release's files are put."""
        return _ROOT / "dist" / str(self.version)

    @property
    def context(self) -> str:
        """The file name of the archive with all that an engine needs to build the image."""
        return f"parley-{self.version}-context.tar.gz"


def main(arguments: Sequence[str]) -> int:
    """Release the version in the arguments; returns the exit status."""
    parser = argparse.ArgumentParser(prog="release.py", description="Release a version from this checkout.")
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="look and build, and leave everything as it is")
    asked = parser.parse_args(arguments)
    version = _version_of(asked.version)
    if version is None or str(version) != asked.version or not version.released:
        parser.error(
            f"'{asked.version}' cannot be released: write three numbers with dots between them, such as 0.2.0."
        )
    try:
        release = Release(version, _git("rev-parse", "HEAD"), _asked("rev-parse", "-q", "--verify", f"v{version}^{{}}"))
        return _finish(release, dry=asked.dry_run) if release.tagged else _make(release, dry=asked.dry_run)
    except ReleaseError as error:
        _say(f"{error}\nNothing was released.")
        return 1


def _make(release: Release, *, dry: bool) -> int:
    findings = list(_against(release.version))
    for each in findings:
        _say(f"* {each}")
    if findings:
        _say(f"{release.version} was not released: {len(findings)} things are against it. Nothing was changed.")
        return 1
    section = unreleased(_text(release.head, _CHANGELOG))
    commit = _release_commit(release)
    with _built(release, commit) as folder:
        if dry:
            for file in sorted(folder.iterdir()):
                _say(f"  {file.name}  {file.stat().st_size} bytes")
            _say(f"Nothing is against {release.version}, and its files can be made. Nothing was changed.")
            return 0
        following = _next_commit(release, commit)
        _keep(folder, release.folder)
    try:
        _git(
            "tag",
            "--annotate",
            "--cleanup=verbatim",
            "-m",
            f"Parley {release.version}\n\n{section}",
            release.tag,
            commit,
        )
        _git("merge", "--ff-only", "--quiet", following)
    except ReleaseError:
        _asked("tag", "--delete", release.tag)
        shutil.rmtree(release.folder, ignore_errors=True)
        _tidy()
        raise
    return _told(release)


def _finish(release: Release, *, dry: bool) -> int:
    """Do the remaining steps of a release whose tag exists: add its commits to main where they are missing, and make
    its files again. `dry`: only say what would be done. Returns the exit status.
    """
    merged = _is_ancestor(release.tagged, release.head)
    if not merged and not _is_ancestor(release.head, release.tagged):
        raise ReleaseError(f"The tag {release.tag} is there already, and {BRANCH} goes another way than it.")
    if not merged and _branch() != BRANCH:
        raise ReleaseError(f"The tag {release.tag} is there already; {BRANCH} must be checked out to go on from it.")
    if dry:
        _say(f"{release.version} is tagged already. Nothing was changed.")
        return 0
    if not (release.folder / _SUMS).exists():
        with _built(release, release.tagged) as folder:
            _keep(folder, release.folder)
    if not merged:
        _git("merge", "--ff-only", "--quiet", _next_commit(release, release.tagged))
    return _told(release)


def _told(release: Release) -> int:
    _say(f"{release.version} is released in this checkout: the tag {release.tag}, and in {release.folder}:")
    for file in sorted(release.folder.iterdir()):
        _say(f"  {file.name}")
    _say(
        "Nothing was pushed. To publish it:\n"
        f"  git push --atomic origin {BRANCH} {release.tag}\n"
        f"  docker build --tag parley:{release.version} - < dist/{release.version}/{release.context}"
    )
    return 0


# --- What is against it -----------------------------------------------------------------------------------------------


def _against(version: Version) -> Iterator[str]:
    """The reasons why this version cannot be released now, one sentence each; empty where it can."""
    if _branch() != BRANCH:
        yield f"'{_branch() or 'no branch'}' is checked out; releases are made from '{BRANCH}'."
    changed = _git("status", "--porcelain").splitlines()
    if changed:
        yield f"The checkout has {len(changed)} changes that are not committed: {', '.join(changed[:5])}."
    yield from _against_number(version)
    try:
        unreleased(_text("HEAD", _CHANGELOG))
    except ChangelogError as error:
        yield str(error)
    for path, (line, _) in _LINES.items():
        if len(line.findall(_text("HEAD", path))) != 1:
            yield f"{path} must have one line like '{line.pattern}', which is written by a release."
    _say("Looking at the API's schema, then `make check` ...")
    yield from _against_schema()
    checked = _run(["make", "check"])
    if checked.returncode:
        yield f"`make check` fails:\n{_end_of(checked)}"


def _against_number(version: Version) -> Iterator[str]:
    tags = _git("tag", "--list", "v*").splitlines()
    known = [each for each in (_version_of(tag.removeprefix("v")) for tag in tags) if each is not None]
    here = Version.parse(VERSION)
    if known:
        last = max(known)
        if version not in last.followers:
            allowed = ", ".join(map(str, last.followers))
            yield f"{version} does not follow {last}, the last release: {allowed} would."
    elif version < here:
        yield f"{version} comes before {here}, which this checkout calls itself ({_VERSION_FILE})."


def _against_schema() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "openapi.yaml"
        command = [sys.executable, "manage.py", "spectacular", "--validate", "--fail-on-warn", "--file", str(made)]
        # A home of its own: a release needs none, and must find none.
        wrote = _run(command, variables={"PARLEY_HOME": folder})
        if wrote.returncode:
            yield f"The API's schema cannot be made:\n{_end_of(wrote)}"
        elif made.read_text(encoding="utf-8") != _text("HEAD", _SCHEMA):
            yield f"{_SCHEMA} is not what the code says: run `make openapi` and commit it."


def _version_of(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None


# --- Its commits ------------------------------------------------------------------------------------------------------


def _release_commit(release: Release) -> str:
    files = {path: _with_version(release.head, path, release.version) for path in _LINES}
    files[_CHANGELOG] = released(_text(release.head, _CHANGELOG), str(release.version), datetime.now(UTC).date())
    return _commit(release.head, files, f"Release {release.version}")


def _next_commit(release: Release, commit: str) -> str:
    following = release.version.next_dev
    files = {_VERSION_FILE: _with_version(commit, _VERSION_FILE, following)}
    return _commit(commit, files, f"After {release.version}: this is {following}")


def _with_version(commit: str, path: str, version: Version) -> str:
    line, form = _LINES[path]
    return line.sub(form.format(version), _text(commit, path))


def _commit(parent: str, files: Mapping[str, str], message: str) -> str:
    """Make a commit on top of `parent` in which these files have these texts, and return its id. No branch, no file and
    no index is changed.
    """
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git("read-tree", parent, variables=index)
        for path, text in files.items():
            blob = _git("hash-object", "-w", "--stdin", "--path", path, stdin=text)
            _git("update-index", "--cacheinfo", f"100644,{blob},{path}", variables=index)
        tree = _git("write-tree", variables=index)
    return _git("commit-tree", tree, "-p", parent, "-m", message)


# --- Its files --------------------------------------------------------------------------------------------------------


@contextmanager
def _built(release: Release, commit: str) -> Iterator[Path]:
    """A folder with the wheels, the archive for building the image, and their checksums, made from this commit. It is
    removed at the end of the block.
    """
    dist = _ROOT / "dist"
    dist.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".making-", dir=dist) as making:
            folder = Path(making) / "files"
            folder.mkdir()
            _context_make(commit, folder / release.context)
            _wheels_make(commit, Path(making) / "source", folder)
            wheels = {f"{name}-{release.version}-py3-none-any.whl" for name in _WHEELS}
            found = {each.name for each in folder.glob("*.whl")}
            if found != wheels:
                raise ReleaseError(f"The wheels should be {_listed(wheels)}; made were: {_listed(found)}.")
            sums = [f"{sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in sorted(folder.iterdir())]
            (folder / _SUMS).write_text("".join(sums), encoding="ascii")
            yield folder
    finally:
        _tidy()


def _tidy() -> None:
    with suppress(OSError):  # files of this or other releases are in it
        (_ROOT / "dist").rmdir()


def _context_make(commit: str, target: Path) -> None:
    """Write an archive with all that an engine needs to build the image at a commit: the Dockerfile, and all files but
    those that .dockerignore leaves out.
    """
    let_in = [line[1:] for line in _text(commit, _DOCKERIGNORE).splitlines() if line.startswith("!")]
    _git("archive", "--format=tar.gz", f"--output={target}", commit, _DOCKERFILE, _DOCKERIGNORE, *let_in)


def _wheels_make(commit: str, source: Path, target: Path) -> None:
    """Build the wheels from the files of a commit. They are taken from a git archive, which writes the commit's id into
    xdscore/build.py.
    """
    source.mkdir()
    archive = source.with_suffix(".tar")
    _git("archive", f"--output={archive}", commit, *_PACKED)
    _checked(["tar", "-xf", str(archive), "-C", str(source)])
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    for folder in ("xdsctl", "xdsclient"):
        _checked(build, folder=source / folder)
    _checked([sys.executable, "scripts/rest_client.py", str(target)], folder=source)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _keep(folder: Path, target: Path) -> None:
    """Move the files of a release from `folder` to `target`, and remove what an earlier attempt left there."""
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)


# --- Programs ---------------------------------------------------------------------------------------------------------


def _text(commit: str, path: str) -> str:
    return _git("show", f"{commit}:{path}", whole=True)


def _branch() -> str:
    return _asked("symbolic-ref", "--quiet", "--short", "HEAD")


def _is_ancestor(one: str, other: str) -> bool:
    return _run(["git", "merge-base", "--is-ancestor", one, other]).returncode == 0


def _asked(*arguments: str) -> str:
    """The output of a git command; empty when the command fails."""
    answer = _run(["git", *arguments])
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _git(*arguments: str, stdin: str = "", variables: Mapping[str, str] | None = None, whole: bool = False) -> str:
    """The output of a git command, without blanks and line breaks around it, unless `whole` is set. Raises ReleaseError
    when the command fails.
    """
    said = _checked(["git", *arguments], stdin=stdin, variables=variables)
    return said if whole else said.strip()


def _checked(
    command: Sequence[str], *, folder: Path = _ROOT, stdin: str = "", variables: Mapping[str, str] | None = None
) -> str:
    """The output of a program. Raises ReleaseError when it fails."""
    answer = _run(command, folder=folder, stdin=stdin, variables=variables)
    if answer.returncode:
        raise ReleaseError(f"`{' '.join(command[:4])} ...` fails:\n{_end_of(answer)}")
    return answer.stdout


def _run(
    command: Sequence[str], *, folder: Path = _ROOT, stdin: str = "", variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    try:
        return subprocess.run(  # noqa: S603 - commands of this file
            command,
            cwd=folder,
            env={**inherited, **(variables or {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise ReleaseError(f"{command[0]} cannot be run: {error.strerror}.") from error


def _end_of(answer: "subprocess.CompletedProcess[str]") -> str:
    """The last lines that a program wrote, indented, to be shown in an error."""
    lines = (answer.stdout + answer.stderr).strip().splitlines()[-15:]
    return "\n".join(f"    {line}" for line in lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

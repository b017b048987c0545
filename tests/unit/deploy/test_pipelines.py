"""Pipelines that people copy: nothing foreign becomes code, and what they run of others is what was looked at.

What `${{ … }}` stands for is written into a script before a shell reads it, so that a commit message is a command. What
comes in `env` is a value.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
# What a runner gives to a shell or to another interpreter, in GitHub's, GitLab's and others' words.
SCRIPTS = {"run", "script", "before_script", "after_script", "shell", "sh", "command", "commands"}
# GitHub, Azure and Forgejo; GitLab's inputs.
TEMPLATE = re.compile(r"\$\{\{|\$\[\[")
PINNED = re.compile(r"uses: +(\./\S+|\S+@[0-9a-f]{40} +# v\d+\.\d+\.\d+)$")


def pipelines() -> Iterator[tuple[str, str]]:
    """(where, text) of every example, also those that a page shows."""
    for folder in ("deploy/ci", ".github", ".gitlab"):
        for file in sorted((ROOT / folder).rglob("*.y*ml")):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.md"),
        ROOT / "xdsctl" / "README.md",
    ]
    for page in sorted(each for each in pages if each.exists()):
        blocks = re.findall(r"^ *```ya?ml\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks, 1):
            yield f"{page.relative_to(ROOT)}, block {number}", block


def expanded(value: object, *, script: bool = False) -> Iterator[str]:
    """Each text of a script into which something is written."""
    match value:
        case str() if script and TEMPLATE.search(value):
            yield value
        case list():
            for each in value:
                yield from expanded(each, script=script)
        case dict():
            for key, each in value.items():
                if key != "env":
                    yield from expanded(each, script=script or key in SCRIPTS)
        case _:
            pass


PIPELINES = dict(pipelines())


@pytest.mark.parametrize("where", PIPELINES)
def test_pipeline__nothing_is_written_into_a_script(where: str) -> None:
    found = [text for document in yaml.safe_load_all(PIPELINES[where]) for text in expanded(document)]

    assert found == []


@pytest.mark.parametrize("where", PIPELINES)
def test_pipeline__what_it_uses_of_others__is_pinned_by_digest_with_its_version(where: str) -> None:
    used = re.findall(r"uses:.*", PIPELINES[where])

    assert [each for each in used if not PINNED.match(each)] == []


@pytest.mark.parametrize(("name", "job"), [("github-workflow", "rollout"), ("github-workflow-review", "propose")])
def test_github_workflow__job_that_is_given_a_token__runs_for_main_alone(name: str, job: str) -> None:
    jobs = yaml.safe_load(PIPELINES[f"deploy/ci/{name}.yml"])["jobs"]
    given = {name: job for name, job in jobs.items() if "secrets." in str(job)}

    assert list(given) == [job]
    assert [job["if"] for job in given.values()] == ["github.ref == 'refs/heads/main'"]


def test_pipelines__of_this_project__are_found() -> None:
    assert "deploy/ci/github-workflow.yml" in PIPELINES
    assert len(re.findall(r"uses:", PIPELINES["deploy/ci/github-workflow.yml"])) == 2


@pytest.mark.parametrize(
    "text",
    [
        "steps: [{run: 'echo ${{ github.event.head_commit.message }}'}]",
        "job: {script: ['echo a', 'echo $[[ inputs.message ]]']}",
        "steps: [{uses: actions/github-script, with: {script: 'log(`${{ github.head_ref }}`)'}}]",
        "steps: [{run: {all: ['${{ x }}']}}]",
    ],
)
def test_expanded__something_in_a_script__is_found(text: str) -> None:
    assert list(expanded(yaml.safe_load(text)))


def test_expanded__a_value_of_the_environment__is_none() -> None:
    assert not list(expanded(yaml.safe_load("steps: [{run: 'echo $X', env: {X: '${{ x }}', script: '${{ y }}'}}]")))

"""Our Dockerfile says what we want, and its steps are carried out as an engine does."""

from pathlib import Path

import pytest

from scripts.dockerfile_steps import Builder, DockerfileError, Step, context_files, ignored, parse
from tests.support import bubblewrap
from xdscore.build import COMMIT_FILE

ROOT = Path(__file__).parents[3]


def test_dockerfile__last_stage__is_unprivileged_and_has_one_entry_point() -> None:
    stages = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))

    assert [stage.name for stage in stages] == ["builder", "runtime"]
    assert {stage.image for stage in stages} == {"python:3.11-slim-bookworm"}
    assert stages[-1].user() == (10001, 10001)
    assert stages[-1].last("ENTRYPOINT").words() == ["python", "manage.py"]
    assert stages[-1].health()[-1] == "deploy/docker/healthcheck.py"


def test_dockerfile__every_lock__is_installed_by_hash_and_from_wheels() -> None:
    stages = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))

    installs = [each.text for stage in stages for each in stage.steps if "pip install" in each.text]

    assert len(installs) == 2
    assert all("--require-hashes" in each and "--only-binary :all:" in each for each in installs)


def test_parse__comments_and_continued_lines__are_read_as_docker_does() -> None:
    lines = [
        "ARG V=3.11",
        "FROM python:${V} AS one",
        "RUN a \\",
        "    # not part of it",
        "    && b",
        "COPY --from=one --chown=1:1 /x /y",
        'CMD ["a b"]',
    ]

    (stage,) = parse("\n".join(lines))

    assert (stage.name, stage.image) == ("one", "python:3.11")
    run, copy, command = stage.steps
    assert run == Step("RUN", "a && b")
    assert copy == Step("COPY", "/x /y", {"from": "one", "chown": "1:1"})
    assert command.words() == ["a b"]


def test_parse__instruction_that_is_not_carried_out_here__is_refused() -> None:
    with pytest.raises(DockerfileError, match="ADD https://x /y: not carried out here"):
        parse("FROM a\nADD https://x /y\n")


@pytest.mark.parametrize("user", ["root", "0:0", "10001", "10001:0", "parley:parley"])
def test_user__root_or_a_name__is_refused(user: str) -> None:
    (stage,) = parse(f"FROM a\nUSER {user}\n")

    with pytest.raises(DockerfileError, match=f"USER {user}: it must be two numbers"):
        stage.user()


@pytest.mark.parametrize("health", ["CMD curl localhost", 'CMD ["a"', "NONE"])
def test_healthcheck__that_needs_a_shell_or_is_none__is_refused(health: str) -> None:
    (stage,) = parse(f"FROM a\nHEALTHCHECK --interval=1s {health}\n")

    with pytest.raises(DockerfileError, match=r"^HEALTHCHECK .*(must be CMD|no valid exec form)"):
        stage.health()


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("manage.py", True),
        ("controlplane/config/home.py", True),
        ("controlplane/__pycache__/home.cpython-311.pyc", False),
        ("controlplane/home.pyc", False),
        ("deploy/docker/healthcheck.py", True),
        ("deploy/compose/secrets/ads/server.key", False),
        (".env", False),
        (".parley/db.sqlite3", False),
        (".git/config", False),
        ("tests/conftest.py", False),
        ("key.pem", False),
    ],
)
def test_dockerignore__of_the_repository__sends_only_what_runs(path: str, sent: bool) -> None:
    rules = ignored((ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines())

    assert rules.match_file(path) is not sent


def test_context__of_a_directory__has_what_is_let_in_again(tmp_path: Path) -> None:
    for name in ("a/b/keep.txt", "a/b/no.tmp", "a/c.txt", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".dockerignore").write_text("*\n!a/b\n**/*.tmp\n")

    assert [str(path) for path in context_files(tmp_path)] == ["a/b/keep.txt"]


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    context = tmp_path / "context"
    context.mkdir()
    (context / "in.txt").write_text("content\n")
    (context / ".dockerignore").write_text("hidden.txt\n")
    (context / "hidden.txt").touch()
    return Builder(context, tmp_path)


FROM = "FROM python:3.11-slim-bookworm AS"


@bubblewrap.needed_by_images
def test_build__two_stages__carry_files_along_and_leave_the_machine_alone(builder: Builder) -> None:
    text = f"{FROM} one\nWORKDIR /srv/parley-test\nCOPY in.txt ./\nRUN cp in.txt /srv/parley-test/out.txt\n"

    image = builder.build(
        parse(f"{text}{FROM} two\nCOPY --from=one /srv/parley-test /opt/parley-test\nENV A=/opt/parley-test:$A\n")
    )

    assert (image.here("/opt/parley-test/out.txt")).read_text() == "content\n"
    assert image.environment["A"] == "/opt/parley-test:"
    assert not Path("/srv/parley-test").exists()
    assert not Path("/opt/parley-test").exists()


@bubblewrap.needed_by_images
@pytest.mark.parametrize(("told", "written"), [("", "before"), ("8d8d2a0c11e4", "8d8d2a0c11e4")])
def test_build__commit_as_a_build_argument__is_written_where_the_version_is_read(
    builder: Builder, told: str, written: str
) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    (step,) = [line for line in dockerfile if line.startswith("RUN") and "$COMMIT" in line]
    place = f"WORKDIR /srv/parley-test\nRUN mkdir xdscore && echo before >xdscore/{COMMIT_FILE}\n"

    image = builder.build(parse(f"{FROM} one\n{place}ARG COMMIT={told}\n{step}\n"))

    assert image.here(f"/srv/parley-test/xdscore/{COMMIT_FILE}").read_text() == f"{written}\n"


@bubblewrap.needed_by_images
def test_build__steps_that_change_the_base_image__are_named(builder: Builder) -> None:
    builder.build(parse(f"{FROM} one\nRUN apt-get update && apt-get install gcc\nRUN true\n"))

    assert [left_out for _stage, _step, left_out in builder.told] == ["installs packages into the base image", ""]


@bubblewrap.needed_by_images
@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("COPY hidden.txt ./", "COPY hidden.txt ./: finds no hidden.txt"),
        ("COPY --from=other /a /b", "COPY /a /b: there is no stage other"),
        ("RUN echo broken && exit 3", "RUN echo broken && exit 3 ended with status 3:\nbroken"),
    ],
)
def test_build__a_step_that_fails__says_which(builder: Builder, step: str, said: str) -> None:
    with pytest.raises(DockerfileError, match=said):
        builder.build(parse(f"{FROM} one\n{step}\n"))


@bubblewrap.needed_by_images
def test_image__run_with_a_volume__is_its_own_user_and_writes_only_there(builder: Builder) -> None:
    image = builder.build(parse(f"{FROM} one\nRUN mkdir -m 0777 /opt/open /var/data\n"))

    ended = image.ended(["sh", "-c", "id -u; touch /var/data/a; touch /opt/open/b"], (10001, 10001), "/var/data")

    assert ended.stdout.splitlines()[0] == "10001"
    assert "Read-only file system" in ended.stdout
    assert [path.name for path in (*image.here("/var/data").iterdir(), *image.here("/opt/open").iterdir())] == ["a"]

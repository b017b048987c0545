"""The settings as Django itself judges them; of other environments in an interpreter of its own for each."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks.security import base as security
from django.core.checks.security.csrf import check_csrf_middleware
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string
from pytest_django.fixtures import Settings

from controlplane.config.variables import MEANINGS
from tests.support.ports import free_ports

ROOT = Path(__file__).parents[3]
PRODUCTION = {
    "PARLEY_PUBLIC_URL": "https://parley.example.org",
    "PARLEY_TRUSTED_PROXIES": "10.0.0.0/8",
    "PARLEY_SECRET_KEY": "a-secret-of-production-which-is-long-enough-and-has-many-letters",
    "PARLEY_ENCRYPTION_KEYS": "A" * 43,
}

# Of Django: those that pass over what they check where its own middleware is not named.
SECURITY_CHECKS = (
    security.check_security_middleware,
    security.check_xframe_options_middleware,
    security.check_content_type_nosniff,
    security.check_xframe_deny,
    security.check_referrer_policy,
    security.check_cross_origin_opener_policy,
    check_csrf_middleware,
)


def manage(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("variable", "without", "said"),
    [
        ("PARLEY_PUBLIC_URL", "http://parley.example.org", "(parley.W001) PARLEY_PUBLIC_URL is http://parley."),
        ("PARLEY_TRUSTED_PROXIES", "", "(parley.W002) PARLEY_TRUSTED_PROXIES is empty"),
    ],
)
def test_check_deploy__people_come_over_plain_http__warns_once_and_names_the_variable(
    tmp_path: Path, variable: str, without: str, said: str
) -> None:
    checked = manage("check", "--deploy", **{**PRODUCTION, variable: without}, PARLEY_HOME=str(tmp_path / "home"))

    assert said in checked.stderr
    assert "HINT: " in checked.stderr
    assert "security.W" not in checked.stderr


def test_check_deploy__production_variables__finds_nothing(tmp_path: Path) -> None:
    checked = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION, PARLEY_HOME=str(tmp_path / "home"))

    assert checked.returncode == 0, checked.stderr
    assert not (tmp_path / "home").exists()


def test_middleware__in_place_of_django_s__is_checked_as_django_checks_its_own(settings: Settings) -> None:
    bases = [base for path in settings.MIDDLEWARE for base in import_string(path).__mro__]
    django = {base for base in bases if base.__module__.startswith("django.")}
    assert {SecurityMiddleware, CsrfViewMiddleware, XFrameOptionsMiddleware} <= django

    settings.MIDDLEWARE = [f"{base.__module__}.{base.__qualname__}" for base in django]

    assert [found for check in SECURITY_CHECKS for found in check(None)] == []


def test_manage__bad_variable__one_sentence_and_status_two(tmp_path: Path) -> None:
    refused = manage("check", PARLEY_WEB_ADDRESS="nowhere", PARLEY_HOME=str(tmp_path / "home"))

    assert refused.returncode == 2
    assert refused.stderr.startswith("PARLEY_WEB_ADDRESS must be host:port")
    assert refused.stderr.count("\n") == 1


def test_config__secrets_set__are_not_printed(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    shown = manage(
        "config",
        PARLEY_HOME=str(tmp_path / "home"),
        DATABASE_URL=f"postgres://u:hunter2@127.0.0.1:{port}/parley",
        REDIS_URL=f"redis://:hunter2@127.0.0.1:{port}/0",
        PARLEY_ADMIN_PASSWORD="hunter2",
        PARLEY_MAIL_URL="smtps://u:hunter2@mail.example.org:465?from=parley@example.org",
        PARLEY_SECRET_KEY="hunter2" * 8,
        PARLEY_ENCRYPTION_KEYS=base64.urlsafe_b64encode(b"hunter2!" * 4).decode(),
        PARLEY_LIMIT_NAME_BYTES="512",
    )

    assert shown.returncode == 0, shown.stderr
    assert "hunter2" not in shown.stdout + shown.stderr
    assert base64.urlsafe_b64encode(b"hunter2").decode()[:8] not in shown.stdout
    assert "PARLEY_LIMIT_NAME_BYTES=512  (default: 1024)" in shown.stdout
    assert "PARLEY_MAIL_URL=(set, hidden)" in shown.stdout
    assert "PARLEY_WEB_ADDRESS=127.0.0.1:8000  (default)" in shown.stdout


def test_config__as_json_with_an_unknown_variable__lists_every_variable_and_warns(tmp_path: Path) -> None:
    shown = manage("config", "--format", "json", PARLEY_HOME=str(tmp_path / "home"), PARLEY_ADS_ADRESS="[::1]:1")

    assert {each["name"] for each in json.loads(shown.stdout)} == set(MEANINGS)
    assert shown.stderr.strip() == "PARLEY_ADS_ADRESS is no variable of Parley; did you mean PARLEY_ADS_ADDRESS?"


def test_migrate__no_home_yet__makes_it(tmp_path: Path) -> None:
    # The smallest of the applications: all of them cost seconds.
    done = manage("migrate", "contenttypes", PARLEY_HOME=str(tmp_path / "home"))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home" / "db.sqlite3").exists()

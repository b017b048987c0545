"""Preparing an installation: once, and again without harm."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model

from controlplane.accounts.models import ClientToken
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.accounts.selectors import client_token_is_valid, client_tokens_valid, token_principal
from controlplane.accounts.services import client_token_revoke
from controlplane.accounts.token_text import token_digest
from controlplane.catalog.models import Environment
from controlplane.config.home import Home, home_create
from controlplane.config.loading import Config, load
from controlplane.ops.installation import CLIENT_SUBJECT, installation_prepare
from controlplane.ops.management.commands.prepare import report
from controlplane.schemas.following import NOTHING, schema_take
from tests.support.principals import somebody
from tests.unit.schema.test_pool import file
from xdscore.schema.sets import packed, schema_with

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path: Path) -> tuple[Config, Home]:
    config = load({"PARLEY_HOME": str(tmp_path / "home")}, directory=tmp_path)
    return config, home_create(config)


def password(home: Home) -> str:
    return home.admin_password.read_text().strip()


def test_prepare__an_empty_database__administrator_token_and_environment(place: tuple[Config, Home]) -> None:
    config, home = place

    installation_prepare(config=config, home=home)

    assert authenticate(username="admin", password=password(home)) is not None
    assert token_principal(home.admin_token.read_text().strip()) is not None
    assert Environment.objects.filter(key="default").count() == 1


def test_prepare__again__changes_nothing(place: tuple[Config, Home]) -> None:
    config, home = place
    installation_prepare(config=config, home=home)
    before = (password(home), home.admin_token.read_bytes(), get_user_model().objects.count())

    installation_prepare(config=config, home=home)

    assert (password(home), home.admin_token.read_bytes(), get_user_model().objects.count()) == before


def test_prepare__the_token_was_revoked__writes_a_new_one(place: tuple[Config, Home]) -> None:
    config, home = place
    installation_prepare(config=config, home=home)
    home.admin_token.write_text("parley_forged")

    installation_prepare(config=config, home=home)

    assert token_principal(home.admin_token.read_text().strip()) is not None


@pytest.fixture
def token_mode(tmp_path: Path) -> tuple[Config, Home]:
    variables = {"PARLEY_HOME": str(tmp_path / "home"), "PARLEY_ADS_AUTH": "token"}
    config = load(variables, directory=tmp_path)
    return config, home_create(config)


def test_prepare__token_mode__a_client_token_that_ads_takes_for_its_owner_alone(
    token_mode: tuple[Config, Home],
) -> None:
    config, home = token_mode

    installation_prepare(config=config, home=home)
    token = home.client_token.read_text().strip()
    installation_prepare(config=config, home=home)

    assert [(row.digest, row.subject) for row in client_tokens_valid()] == [(token_digest(token), CLIENT_SUBJECT)]
    assert home.client_token.read_text().strip() == token
    assert stat.S_IMODE(home.client_token.stat().st_mode) == 0o600


def test_prepare__the_client_token_was_revoked__writes_a_new_one(token_mode: tuple[Config, Home]) -> None:
    config, home = token_mode
    installation_prepare(config=config, home=home)
    before = home.client_token.read_text()
    client_token_revoke(token=ClientToken.objects.get(), actor=somebody("dana", ADMIN_SCOPES))

    installation_prepare(config=config, home=home)

    assert home.client_token.read_text() != before
    assert client_token_is_valid(home.client_token.read_text().strip())


def test_prepare__another_mode__no_client_token(place: tuple[Config, Home]) -> None:
    config, home = place

    installation_prepare(config=config, home=home)

    assert not home.client_token.exists()
    assert client_tokens_valid() == ()


def test_prepare__a_password_in_the_environment__is_used_and_written_nowhere(tmp_path: Path) -> None:
    variables = {"PARLEY_HOME": str(tmp_path / "home"), "PARLEY_ADMIN_PASSWORD": "correct horse battery"}
    config = load(variables, directory=tmp_path)
    home = home_create(config)

    installation_prepare(config=config, home=home)

    assert authenticate(username="admin", password="correct horse battery") is not None
    assert not home.admin_password.exists()


def test_prepare__password_changed_by_its_owner__stays_changed(place: tuple[Config, Home]) -> None:
    config, home = place
    installation_prepare(config=config, home=home)
    user = get_user_model().objects.get(username="admin")
    user.set_password("chosen by a person")
    user.save()

    installation_prepare(config=config, home=home)

    assert authenticate(username="admin", password="chosen by a person") is not None


def test_report__first_and_second_preparation__says_what_was_made_and_where_the_token_is(
    place: tuple[Config, Home],
) -> None:
    config, home = place

    first = "\n".join(report(installation_prepare(config=config, home=home), home))
    second = "\n".join(report(installation_prepare(config=config, home=home), home))

    assert f"{home.admin_token} (made now)" in first
    assert str(home.admin_password) in first
    assert f"{home.admin_token} (was there)" in second
    assert "Administrator" not in second
    assert home.admin_token.read_text().strip() not in first + second
    assert password(home) not in first


@pytest.fixture
def own_schema() -> Iterator[None]:
    """Whatever is added is read by in this process until then."""
    yield
    schema_take(schema_with([]), NOTHING)


@pytest.mark.usefixtures("own_schema")
def test_prepare__with_sets_of_descriptors__adds_them_once_and_tells_of_those_that_are_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "acme.binpb").write_bytes(packed([file("acme/filter.proto", message="Filter", text=1)]))
    (folder / "broken.binpb").write_bytes(b"\xff")
    (folder / "README.md").write_text("how these were made")
    config = load({"PARLEY_HOME": str(tmp_path / "home"), "PARLEY_SCHEMA": "sets"}, directory=tmp_path)
    home = home_create(config)

    first, again = (installation_prepare(config=config, home=home) for _ in range(2))

    assert (first.sets, again.sets) == (("acme",), ())
    assert "Schema: acme is added." in report(first, home)
    (problem,) = first.untaken
    assert problem.startswith("broken.binpb: This is no FileDescriptorSet")
    assert again.untaken == first.untaken


@pytest.mark.parametrize("name", ["nowhere", "empty", "empty/notes.txt"])
def test_prepare__without_any_set_where_some_should_be__says_so_and_goes_on(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config = load({"PARLEY_HOME": str(tmp_path / "home"), "PARLEY_SCHEMA": name}, directory=tmp_path)

    done = installation_prepare(config=config, home=home_create(config))

    (problem,) = done.untaken
    assert problem == f"{tmp_path / name} is neither a file NAME.binpb nor a folder with one."
    assert Environment.objects.filter(key="default").exists()

"""Where the broker's socket goes, who holds the locks, and when preparing can be skipped."""

import os
import stat
from pathlib import Path

import pytest

from controlplane.config.home import Home, home_create
from controlplane.config.loading import Config, load
from controlplane.ops.supervisor.locks import Held, supervisor_absent, supervisor_lock
from controlplane.ops.supervisor.prepared import prepared, prepared_note
from controlplane.ops.supervisor.valkey import SOCKET_PATH_BYTES_MAX, socket_clear, socket_place, valkey_binary
from tests.support.keys import ENCRYPTION_KEYS


def config(path: Path, **environment: str) -> Config:
    return load({"PARLEY_HOME": str(path), **environment}, directory=path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_create(config(tmp_path / "home"))


@pytest.fixture
def deep_home(tmp_path: Path) -> Home:
    return home_create(config(tmp_path / ("x" * SOCKET_PATH_BYTES_MAX) / "home"))


def test_valkey_binary__the_wheel_is_installed__can_be_run() -> None:
    binary = valkey_binary()

    assert binary is not None
    assert os.access(binary, os.X_OK)


def test_socket_place__a_short_path__is_in_the_home(home: Home) -> None:
    assert socket_place(home) == home.valkey_socket
    assert not home.valkey_socket.is_symlink()


def test_socket_place__a_long_path__is_private_elsewhere_and_linked(deep_home: Home) -> None:
    place = socket_place(deep_home)

    try:
        assert len(os.fsencode(place)) <= SOCKET_PATH_BYTES_MAX
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert deep_home.valkey_socket.readlink() == place
    finally:
        socket_clear(deep_home)
    assert not place.parent.exists()
    assert not deep_home.valkey_socket.is_symlink()


def test_socket_clear__a_link_that_was_altered__removes_the_link_only(home: Home, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "valkey.sock").write_text("not a socket")
    home.valkey_socket.symlink_to(precious / "valkey.sock")

    socket_clear(home)

    assert (precious / "valkey.sock").exists()
    assert not home.valkey_socket.is_symlink()


def test_supervisor_lock__held__a_second_one_is_told_by_whom(home: Home) -> None:
    descriptor = supervisor_lock(home)

    with pytest.raises(Held, match=rf"^Parley runs in PARLEY_HOME {home.path} already \(process {os.getpid()}\)\.$"):
        supervisor_lock(home)
    with pytest.raises(Held):
        supervisor_absent(home)
    os.close(descriptor)

    supervisor_absent(home)


def test_supervisor_absent__no_home__creates_none(tmp_path: Path) -> None:
    supervisor_absent(Home(tmp_path / "home"))

    assert list(tmp_path.iterdir()) == []


def test_prepared__database_replaced_or_token_lost__is_prepared_again(home: Home) -> None:
    settings = config(home.path)
    home.database.write_text("tables")
    home.admin_token.write_text("token")
    assert not prepared(settings, home)

    prepared_note(settings, home)

    assert prepared(settings, home)
    copy = home.path / "copy"
    copy.write_text("older tables")
    copy.replace(home.database)
    assert not prepared(settings, home)
    prepared_note(settings, home)
    home.admin_token.unlink()
    assert not prepared(settings, home)


def test_prepared__token_mode__wants_the_client_token_too(home: Home) -> None:
    settings = config(home.path, PARLEY_ADS_AUTH="token")
    home.database.write_text("tables")
    home.admin_token.write_text("token")
    prepared_note(settings, home)
    assert not prepared(settings, home)

    home.client_token.write_text("token")

    assert prepared(settings, home)


def test_prepared__postgresql__is_asked_every_time(home: Home) -> None:
    settings = config(home.path, DATABASE_URL="postgres://u@db/parley", PARLEY_ENCRYPTION_KEYS=ENCRYPTION_KEYS)
    home.admin_token.write_text("token")

    prepared_note(settings, home)

    assert not prepared(settings, home)

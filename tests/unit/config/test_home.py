"""What lives in the home, and who may read it."""

import stat
from pathlib import Path
from urllib.parse import unquote

import pytest
from kombu.utils.url import url_to_parts
from redis import ConnectionPool

from controlplane.config import home
from controlplane.config.home import Home, HomeError
from controlplane.config.loading import Config, load


def config(path: Path, **environment: str) -> Config:
    return load({"PARLEY_HOME": str(path), **environment}, directory=path)


def client_option(url: str, name: str) -> object:
    """What redis-py makes of a URL."""
    return ConnectionPool.from_url(url).connection_kwargs[name]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_home_create__nothing_there__only_its_owner_may_look(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "home"

    made = home.home_create(config(place))

    assert {each.name for each in place.iterdir()} == {"run", "cache", "logs", "secret.key", "encryption.keys"}
    assert {mode(each) for each in (place, made.run, made.cache, made.logs)} == {0o700}
    assert {mode(each) for each in (made.secret_key, made.encryption_keys)} == {0o600}


def test_home_create__a_second_time__keeps_the_keys(tmp_path: Path) -> None:
    settings = config(tmp_path / "home")
    home.home_create(settings)
    before = (home.secret_key(settings), home.encryption_keys(settings))

    home.home_create(settings)

    assert (home.secret_key(settings), home.encryption_keys(settings)) == before
    assert len(before[0]) >= 50
    assert [len(key) for key in before[1]] == [32]


def test_home_create__keys_in_variables__writes_none(tmp_path: Path) -> None:
    settings = config(tmp_path / "home", PARLEY_SECRET_KEY="s" * 50, PARLEY_ENCRYPTION_KEYS="A" * 43)

    made = home.home_create(settings)

    assert not made.secret_key.exists()
    assert not made.encryption_keys.exists()
    assert home.secret_key(settings) == "s" * 50


def test_home_create__open_to_others__is_closed(tmp_path: Path) -> None:
    place = tmp_path / "home"
    place.mkdir(mode=0o755)

    home.home_create(config(place))

    assert mode(place) == 0o700


def test_home_create__a_file_in_its_place__one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "home"
    place.write_text("in the way")

    with pytest.raises(HomeError, match=r"^PARLEY_HOME .*home cannot be used: file exists\.$"):
        home.home_create(config(place))


def test_secret_key__no_home_yet__reading_creates_nothing(tmp_path: Path) -> None:
    settings = config(tmp_path / "home")

    first, second = home.secret_key(settings), home.secret_key(settings)

    assert first == second
    assert not (tmp_path / "home").exists()


def test_encryption_keys__file_is_missing__are_never_invented(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="PARLEY_ENCRYPTION_KEYS"):
        home.encryption_keys(config(tmp_path / "home"))


def test_encryption_keys__a_new_first_line__is_the_first_key(tmp_path: Path) -> None:
    settings = config(tmp_path / "home")
    file = home.home_create(settings).encryption_keys
    old = home.encryption_keys(settings)
    file.write_text("A" * 43 + "\n" + file.read_text())

    assert home.encryption_keys(settings) == (bytes(32), *old)


def test_private_create__two_writers__the_first_one_wins(tmp_path: Path) -> None:
    file = tmp_path / "admin.password"

    assert home.private_create(file, "first")
    assert not home.private_create(file, "second")

    assert file.read_text() == "first\n"
    assert list(tmp_path.iterdir()) == [file]


def test_private_replace__a_file_that_others_may_read__becomes_private(tmp_path: Path) -> None:
    file = tmp_path / "admin.token"
    file.write_text("old")
    file.chmod(0o644)

    home.private_replace(file, "new")

    assert file.read_text() == "new\n"
    assert mode(file) == 0o600


def test_broker_url__embedded_with_a_space_in_the_path__both_libraries_find_the_socket(tmp_path: Path) -> None:
    settings = config(tmp_path / "a b" / "home")
    socket = str(tmp_path / "a b" / "home" / "run" / "valkey.sock")

    url = home.broker_url(settings)

    assert "/" + unquote(str(url_to_parts(url).path)) == socket
    assert client_option(home.redis_client_url(url), "path") == socket


def test_broker_url__socket_is_a_link__follows_it(tmp_path: Path) -> None:
    settings = config(tmp_path / "home")
    Home(settings.home).run.mkdir(parents=True)
    Home(settings.home).valkey_socket.symlink_to("/private/parley-x/valkey.sock")

    assert home.broker_url(settings) == "redis+socket:///private/parley-x/valkey.sock"


def test_redis_client_url__numbered_database_on_a_socket__keeps_its_number() -> None:
    url = home.redis_client_url("redis+socket:///run/redis.sock?virtual_host=3")

    assert client_option(url, "path") == "/run/redis.sock"
    assert client_option(url, "db") == 3


def test_redis_client_url__over_tcp__is_the_same() -> None:
    assert home.redis_client_url("rediss://:pw@cache:6379/1") == "rediss://:pw@cache:6379/1"

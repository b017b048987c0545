"""What the environment may say, and what a bad value is told."""

from pathlib import Path

import pytest

from controlplane.config.loading import Config, ConfigError, Debounce, load
from controlplane.config.values import MailSecurity, RepeatErrors
from xdscore.auth_modes import AuthMode

HERE = Path("/somewhere/with a space")
KEY = "A" * 43  # 32 zero bytes, in base64 without padding
OTHER_KEY = "B" + "A" * 42
PLAIN_TLS = {"PARLEY_ADS_TLS_CERT": "cert.pem", "PARLEY_ADS_TLS_KEY": "key.pem"}


def read(**environment: str) -> Config:
    return load(environment, directory=HERE)


def problems(**environment: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read(**environment)
    return caught.value.problems


def test_load__nothing_set__the_defaults_of_the_interface() -> None:
    config = read()

    assert config.home == HERE / ".parley"
    assert config.database is None
    assert config.embedded_valkey
    assert str(config.web_address) == "127.0.0.1:8000"
    assert str(config.ads_address) == "127.0.0.1:18000"
    assert str(config.metrics_address) == "127.0.0.1:9102"
    assert config.ads_workers == 1
    assert config.ads_auth is AuthMode.NONE
    assert config.public_url == "http://127.0.0.1:8000"
    assert config.debounce is None
    assert config.repeat_errors is RepeatErrors.FULL_STATE


def test_load__empty_variables__count_as_unset() -> None:
    config = read(DATABASE_URL="", REDIS_URL=" ", PARLEY_WEB_ADDRESS="", PARLEY_MAIL_URL="")

    assert config == read()


def test_load__several_bad_values__all_are_named_at_once() -> None:
    found = problems(PARLEY_WEB_ADDRESS="nowhere", PARLEY_ADS_WORKERS="many", PARLEY_ADS_AUTH="password")

    assert [sentence.split()[0] for sentence in found] == [
        "PARLEY_WEB_ADDRESS",
        "PARLEY_ADS_WORKERS",
        "PARLEY_ADS_AUTH",
    ]
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARLEY_WEB_ADDRESS", "127.0.0.1"),
        ("PARLEY_WEB_ADDRESS", "127.0.0.1:0"),
        ("PARLEY_WEB_ADDRESS", "127.0.0.1:65536"),
        ("PARLEY_WEB_ADDRESS", "::1:8000"),
        ("PARLEY_WEB_ADDRESS", "[127.0.0.1]:8000"),
        ("PARLEY_WEB_ADDRESS", "http://127.0.0.1:8000"),
        ("PARLEY_ADS_ADDRESS", "127.0.0.1:\uff18\uff10"),
        ("PARLEY_ADS_WORKERS", "0"),
        ("PARLEY_ADS_WORKERS", "1.5"),
        ("PARLEY_ADS_AUTH", "NONE"),
        ("PARLEY_INSECURE", "yes"),
        ("PARLEY_DEBOUNCE_MS", "-1"),
        ("PARLEY_REPEAT_ERRORS", "sometimes"),
        ("PARLEY_PUBLIC_URL", "parley.example.org"),
        ("PARLEY_PUBLIC_URL", "https://parley.example.org/below"),
        ("PARLEY_PUBLIC_URL", "https://user@parley.example.org"),
        ("PARLEY_PUBLIC_URL", "ftp://parley.example.org"),
        ("PARLEY_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("PARLEY_TRUSTED_PROXIES", "proxy.example.org"),
        ("PARLEY_WEBHOOK_ALLOW", "10.0.0.300"),
        ("PARLEY_WEBHOOK_ALLOW", "http://hooks.example.org"),
        ("PARLEY_ADS_TRUST_DOMAINS", "spiffe://prod.example.org"),
        ("DATABASE_URL", "mysql://u:p@db/parley"),
        ("DATABASE_URL", "postgres://u:p@db"),
        ("DATABASE_URL", "postgres:///parley"),
        ("DATABASE_URL", "postgres://u:p@db:port/parley"),
        ("REDIS_URL", "http://localhost:6379"),
        ("REDIS_URL", "redis://localhost/first"),
        ("REDIS_URL", "redis+socket://"),
        ("PARLEY_SECRET_KEY", "short"),
        ("PARLEY_ENCRYPTION_KEYS", "not-a-key"),
        ("PARLEY_ENCRYPTION_KEYS", f"{KEY},{KEY}"),
        ("PARLEY_MAIL_URL", "smtp://mail.example.org"),
        ("PARLEY_MAIL_URL", "smtps://mail.example.org?from=me@example.org&x=1"),
        ("PARLEY_HOME", "a\0b"),
        ("PARLEY_LIMIT_NAME_BYTES", "1025"),
    ],
)
def test_load__a_bad_value__one_sentence_that_starts_with_the_variable(name: str, value: str) -> None:
    found = problems(**{name: value})

    assert len(found) == 1
    assert found[0].startswith(f"{name} ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://u:hunter2@db/parley"),
        ("REDIS_URL", "http://:hunter2@localhost"),
        ("PARLEY_SECRET_KEY", "hunter2"),
        ("PARLEY_ENCRYPTION_KEYS", "hunter2"),
        ("PARLEY_MAIL_URL", "imap://u:hunter2@mail"),
    ],
)
def test_load__a_bad_secret__is_not_repeated(name: str, value: str) -> None:
    assert "hunter2" not in "".join(problems(**{name: value}))


def test_config__its_repr__shows_no_secret() -> None:
    config = read(
        DATABASE_URL="postgres://u:hunter2@db/parley",
        REDIS_URL="redis://:hunter2@cache:6379/0",
        PARLEY_SECRET_KEY="hunter2" * 10,
        PARLEY_ADMIN_PASSWORD="hunter2",
        PARLEY_MAIL_URL="smtps://u:hunter2@mail?from=parley@example.org",
        PARLEY_ENCRYPTION_KEYS=KEY,
    )

    assert "hunter2" not in repr(config)
    assert "hunter2" not in repr(config.database)
    assert repr(bytes(32)) not in repr(config)


def test_database__full_url__every_part_is_decoded() -> None:
    database = read(
        DATABASE_URL="postgresql://me:p%40ss@db.example.org:6432/parley?sslmode=verify-full", PARLEY_ENCRYPTION_KEYS=KEY
    ).database

    assert database is not None
    assert (database.host, database.port, database.user, database.name) == ("db.example.org", "6432", "me", "parley")
    assert database.password == "p@ss"
    assert database.options == (("sslmode", "verify-full"),)


def test_database__of_a_server_without_keys__is_refused_with_where_they_may_be(tmp_path: Path) -> None:
    (said,) = problems(DATABASE_URL="postgres://u:hunter2@db/parley", PARLEY_HOME=str(tmp_path / "home"))

    assert "PARLEY_ENCRYPTION_KEYS is not set" in said
    assert str(tmp_path / "home" / "encryption.keys") in said
    assert "openssl rand -base64 32" in said
    assert "hunter2" not in said


def test_database__socket_directory__is_the_host() -> None:
    database = read(DATABASE_URL="postgres://me@/parley?host=/run/postgresql", PARLEY_ENCRYPTION_KEYS=KEY).database

    assert database is not None
    assert database.host == "/run/postgresql"


def test_addresses__ipv6_in_brackets__keeps_them_when_printed() -> None:
    address = read(PARLEY_WEB_ADDRESS="[::1]:8000").web_address

    assert (address.host, address.port, str(address)) == ("::1", 8000, "[::1]:8000")
    assert address.loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "[::]", "ads.example.org"])  # noqa: S104
def test_auth__none_off_loopback__is_refused_unless_insecure_is_accepted(host: str) -> None:
    found = problems(PARLEY_ADS_ADDRESS=f"{host}:18000")

    assert len(found) == 1
    assert found[0].startswith("PARLEY_ADS_AUTH is none")
    assert read(PARLEY_ADS_ADDRESS=f"{host}:18000", PARLEY_INSECURE="1").ads_auth is AuthMode.NONE


@pytest.mark.parametrize(
    ("more", "reached"),
    [
        ({}, "127.0.0.1:18000"),
        ({"PARLEY_ADS_ADDRESS": "[::1]:9000"}, "[::1]:9000"),
        ({"PARLEY_ADS_ADDRESS": "0.0.0.0:9000", "PARLEY_PUBLIC_URL": "https://cp.example"}, "cp.example:9000"),
        ({"PARLEY_ADS_ADDRESS": "0.0.0.0:9000", "PARLEY_ADS_PUBLIC_ADDRESS": "ads.example:443"}, "ads.example:443"),
    ],
)
def test_public_address__unset_or_set__is_where_clients_reach_ads(more: dict[str, str], reached: str) -> None:
    assert str(read(PARLEY_INSECURE="1", **more).ads_public_address) == reached


@pytest.mark.parametrize(
    ("more", "reached"),
    [
        ({}, "None"),
        ({"PARLEY_ADS_REST_ADDRESS": "127.0.0.1:18080"}, "127.0.0.1:18080"),
        ({"PARLEY_ADS_REST_ADDRESS": "0.0.0.0:18080", "PARLEY_PUBLIC_URL": "https://cp.example"}, "127.0.0.1:18080"),
        (
            {"PARLEY_ADS_REST_ADDRESS": "0.0.0.0:18080", "PARLEY_ADS_PUBLIC_ADDRESS": "ads.example:443"},
            "ads.example:18080",
        ),
        (
            {"PARLEY_ADS_REST_ADDRESS": "0.0.0.0:18080", "PARLEY_ADS_REST_PUBLIC_ADDRESS": "poll.example:443"},
            "poll.example:443",
        ),
    ],
)
def test_rest_public_address__unset_or_set__is_where_clients_poll(more: dict[str, str], reached: str) -> None:
    assert str(read(PARLEY_INSECURE="1", **more).rest_public_address) == reached


def test_rest_public_address__without_rest__says_nothing() -> None:
    (found,) = problems(PARLEY_ADS_REST_PUBLIC_ADDRESS="poll.example:443")

    assert found.startswith("PARLEY_ADS_REST_PUBLIC_ADDRESS says nothing without PARLEY_ADS_REST_ADDRESS")


def test_rest_address__off_loopback_without_proof__is_refused_as_that_of_ads() -> None:
    (found,) = problems(PARLEY_ADS_REST_ADDRESS="0.0.0.0:18080")

    assert found.startswith("PARLEY_ADS_AUTH is none and PARLEY_ADS_REST_ADDRESS 0.0.0.0:18080 is not a loopback")


def test_rest_address__is_that_of_another_listener__is_refused() -> None:
    (found,) = problems(PARLEY_ADS_REST_ADDRESS="127.0.0.1:18000")

    assert found == "PARLEY_ADS_REST_ADDRESS is 127.0.0.1:18000, which PARLEY_ADS_ADDRESS uses already."


@pytest.mark.parametrize("address", ["0.0.0.0:18000", "[::]:18000", "ads.example", "ads.example:0"])
def test_public_address__nobody_can_connect_to__is_refused(address: str) -> None:
    (found,) = problems(PARLEY_ADS_PUBLIC_ADDRESS=address)

    assert found.startswith("PARLEY_ADS_PUBLIC_ADDRESS must ")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"])
def test_auth__none_on_loopback__is_fine(host: str) -> None:
    assert read(PARLEY_ADS_ADDRESS=f"{host}:18000").ads_address.loopback


def test_auth__token_off_loopback__needs_tls() -> None:
    found = problems(PARLEY_ADS_AUTH="token", PARLEY_ADS_ADDRESS="0.0.0.0:18000")

    assert "PARLEY_ADS_TLS_CERT" in found[0]
    assert read(PARLEY_ADS_AUTH="token", PARLEY_ADS_ADDRESS="0.0.0.0:18000", **PLAIN_TLS).ads_tls is not None


def test_auth__mtls_alone__names_everything_it_needs() -> None:
    found = problems(PARLEY_ADS_AUTH="mtls")

    assert "PARLEY_ADS_TLS_CLIENT_CA" in found[0]
    assert "PARLEY_ADS_TRUST_DOMAINS" in found[1]


def test_tls__certificate_without_key__is_refused() -> None:
    assert problems(PARLEY_ADS_TLS_CERT="cert.pem")[0].startswith("PARLEY_ADS_TLS_CERT needs")


def test_tls__relative_files__start_at_the_directory() -> None:
    tls = read(**PLAIN_TLS).ads_tls

    assert tls is not None
    assert (tls.certificate, tls.key, tls.client_ca) == (HERE / "cert.pem", HERE / "key.pem", None)


def test_addresses__one_for_two_listeners__names_both_variables() -> None:
    found = problems(PARLEY_WEB_ADDRESS="127.0.0.1:18000")

    assert "PARLEY_ADS_ADDRESS" in found[0]
    assert "PARLEY_WEB_ADDRESS" in found[0]


def test_debounce__one_variable_set__the_other_has_its_default() -> None:
    assert read(PARLEY_DEBOUNCE_MS="0").debounce == Debounce(quiet_ms=0, at_most_ms=2_000)
    assert read(PARLEY_DEBOUNCE_MAX_MS="500").debounce == Debounce(quiet_ms=100, at_most_ms=500)


def test_debounce__quiet_time_above_its_bound__is_refused() -> None:
    assert problems(PARLEY_DEBOUNCE_MS="3000")[0].startswith("PARLEY_DEBOUNCE_MS is 3000")


def test_encryption_keys__more_than_the_limit__is_refused_and_can_be_raised() -> None:
    three = f"{KEY},{OTHER_KEY},C{KEY[1:]}"

    assert problems(PARLEY_ENCRYPTION_KEYS=three)[0].startswith("PARLEY_ENCRYPTION_KEYS lists 3 keys")
    assert len(read(PARLEY_ENCRYPTION_KEYS=three, PARLEY_LIMIT_ENCRYPTION_KEYS="3").encryption_keys) == 3


def test_encryption_keys__in_order__are_32_bytes_each() -> None:
    keys = read(PARLEY_ENCRYPTION_KEYS=f"{OTHER_KEY}, {KEY}=").encryption_keys

    assert keys == (b"\x04" + bytes(31), bytes(32))


def test_mail__smtps__port_and_security_follow_from_the_scheme() -> None:
    mail = read(PARLEY_MAIL_URL="smtps://u:p%3A@mail.example.org?from=parley@example.org").mail

    assert mail is not None
    assert (mail.host, mail.port, mail.security) == ("mail.example.org", 465, MailSecurity.TLS)
    assert (mail.user, mail.password, mail.sender) == ("u", "p:", "parley@example.org")


def test_webhooks__networks_and_names__are_told_apart() -> None:
    allow = read(PARLEY_WEBHOOK_ALLOW="10.0.0.0/8, Hooks.internal ,").webhook_allow

    assert [str(network) for network in allow.networks] == ["10.0.0.0/8"]
    assert allow.hosts == ("hooks.internal",)


def test_public_url__slash_at_its_end__is_dropped() -> None:
    config = read(PARLEY_PUBLIC_URL="https://parley.example.org/")

    assert config.public_url == "https://parley.example.org"
    assert config.https

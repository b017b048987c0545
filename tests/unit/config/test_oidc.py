"""The variables of the identity provider: what they may say, and the sentence for what they may not."""

from pathlib import Path

import pytest

from controlplane.accounts.principal import Role
from controlplane.catalog.models import ENVIRONMENT_KEY_PATTERN
from controlplane.common.limits import Limit
from controlplane.config import oidc
from controlplane.config.loading import Config, ConfigError, in_force, load
from controlplane.config.oidc import GroupRole, LocalSignIn

HERE = Path("/here")
ISSUER = {"PARLEY_OIDC_ISSUER": "https://id.example.org/realms/staff", "PARLEY_OIDC_CLIENT_ID": "parley"}


def read(**environment: str) -> Config:
    return load({**ISSUER, **environment}, directory=HERE)


def problems(environment: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(environment, directory=HERE)
    return caught.value.problems


def test_oidc__no_variable__is_none() -> None:
    assert load({}, directory=HERE).oidc is None
    assert load({"PARLEY_OIDC_ISSUER": " ", "PARLEY_OIDC_ROLES": ""}, directory=HERE).oidc is None


def test_oidc__issuer_and_client__have_the_defaults_of_the_reference() -> None:
    found = read().oidc

    assert found is not None
    assert (found.issuer, found.client_id, found.client_secret) == (*ISSUER.values(), "")
    assert (found.scopes, found.groups_claim, found.roles) == (("openid", "profile"), "groups", ())
    assert (found.name, found.local_sign_in) == ("single sign-on", LocalSignIn.EVERYBODY)


def test_oidc__everything_set__is_read() -> None:
    found = read(
        PARLEY_OIDC_SCOPES="openid  profile groups openid",
        PARLEY_OIDC_ROLES="platform=admin, /shop/devs=editor@prod ,CN=ops%2COU=all%25=operator@stage,",
        PARLEY_OIDC_LOCAL_SIGN_IN="break-glass",
        PARLEY_OIDC_NAME="Staff ID",
    ).oidc

    assert found is not None
    assert found.scopes == ("openid", "profile", "groups")
    assert found.roles == (
        GroupRole("platform", Role.ADMIN, ""),
        GroupRole("/shop/devs", Role.EDITOR, "prod"),
        GroupRole("CN=ops,OU=all%", Role.OPERATOR, "stage"),
    )
    assert (found.name, found.local_sign_in) == ("Staff ID", LocalSignIn.BREAK_GLASS)


def test_oidc__roles_with_limits__are_read_with_what_stands_for_separators() -> None:
    written = "pay=editor@prod/types:route+cluster/names:pay*+a%2Fb%2B%2C%3D, ops=viewer/owner:team%20pay"

    found = read(PARLEY_OIDC_ROLES=written).oidc

    assert found is not None
    assert found.roles == (
        GroupRole("pay", Role.EDITOR, "prod", Limit(None, ("cluster", "route"), ("a/b+,=", "pay*"))),
        GroupRole("ops", Role.VIEWER, "", Limit(owner="team pay")),
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ISSUER", "id.example.org", "must be the issuer's URL"),
        ("ISSUER", "ldap://id.example.org", "must be the issuer's URL"),
        ("ISSUER", "https://", "must be the issuer's URL"),
        ("ISSUER", "https://id.example.org/?realm=a", "must be the issuer's URL"),
        ("ISSUER", "https://id.example.org/#", "must be the issuer's URL"),
        ("ISSUER", "https://u:p@id.example.org", "must be the issuer's URL"),
        ("ISSUER", "https://id.example.org:many", "must be the issuer's URL"),
        ("ISSUER", "http://id.example.org", "must begin with https://"),
        ("ISSUER", f"https://id.example.org/{'x' * 255}", "must have at most 255 characters"),
        ("CLIENT_ID", "parl\u00e9y", "must be the client's id"),
        ("CLIENT_ID", "x" * 256, "must be the client's id"),
        ("CLIENT_SECRET", "gehe\u00edm", "must be the client's secret"),
        ("SCOPES", "profile", "must list scopes separated by blanks, openid among them"),
        ("SCOPES", 'openid "all"', "must list scopes separated by blanks, openid among them"),
        ("GROUPS_CLAIM", "x" * 101, "must be the name of a claim"),
        ("NAME", "x" * 41, "must be one line of at most 40"),
        ("ROLES", "platform", "must list GROUP=ROLE or GROUP=ROLE@ENVIRONMENT"),
        ("ROLES", "=admin", "must list GROUP=ROLE or GROUP=ROLE@ENVIRONMENT"),
        ("ROLES", f"{'x' * 256}=admin", "must list GROUP=ROLE or GROUP=ROLE@ENVIRONMENT"),
        ("ROLES", "platform=root", "must give each group a role: viewer, "),
        ("ROLES", "platform=admin@", "must name an environment by its key behind @"),
        ("ROLES", "platform=admin@Prod", "must name an environment by its key behind @"),
        ("ROLES", "pay=editor@prod/", "must limit a role by /owner:OWNER, /types:TYPE+TYPE, /names:NAME+NAME"),
        ("ROLES", "pay=editor@prod/name:x", "must limit a role by /owner:OWNER, /types:TYPE+TYPE, /names:NAME+NAME"),
        (
            "ROLES",
            "pay=editor/owner:a/owner:b",
            "must limit a role by /owner:OWNER, /types:TYPE+TYPE, /names:NAME+NAME",
        ),
        ("ROLES", "pay=editor@prod/types:wheel", "must limit a role as limits are written. Types are one or more of"),
        ("ROLES", "pay=editor@prod/names:", "must limit a role as limits are written. A name is empty."),
        ("ROLES", "pay=editor@prod/names:*", "must limit a role as limits are written. The pattern '*' takes every"),
        ("ROLES", "pay=operator@prod/owner:pay", "must not limit that role. The role operator is about a whole"),
        ("ROLES", ",".join(f"g{number}=viewer" for number in range(501)), "must list at most 500"),
        ("LOCAL_SIGN_IN", "nobody", "must be everybody or break-glass"),
    ],
)
def test_oidc__bad_value__stops_the_start_with_one_sentence_that_names_the_variable(
    name: str, value: str, said: str
) -> None:
    found = problems({**ISSUER, f"PARLEY_OIDC_{name}": value})

    assert len(found) == 1
    assert found[0].startswith(f"PARLEY_OIDC_{name} {said}")


def test_oidc__secret__is_in_no_repr_and_no_list_of_variables() -> None:
    given = {**ISSUER, "PARLEY_OIDC_CLIENT_SECRET": "hunter2"}

    assert "hunter2" not in repr(load(given, directory=HERE))
    shown = {each.name: each for each in in_force(given, directory=HERE)}["PARLEY_OIDC_CLIENT_SECRET"]
    assert (shown.hidden, shown.value) == (True, "")


def test_oidc__half_of_it__says_what_is_missing() -> None:
    assert problems({"PARLEY_OIDC_ISSUER": "https://id.example.org"}) == (
        "PARLEY_OIDC_ISSUER needs PARLEY_OIDC_CLIENT_ID, the id of Parley at the provider.",
    )
    assert problems({"PARLEY_OIDC_CLIENT_ID": "parley", "PARLEY_OIDC_ROLES": "a=admin"}) == (
        "PARLEY_OIDC_CLIENT_ID says nothing without PARLEY_OIDC_ISSUER: set that, or unset it.",
        "PARLEY_OIDC_ROLES says nothing without PARLEY_OIDC_ISSUER: set that, or unset it.",
    )


@pytest.mark.parametrize(
    ("public", "fits"),
    [
        ("https://parley.example.org", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://parley.example.org", False),
    ],
)
def test_oidc__where_people_come_back_to__is_https_or_this_machine(public: str, fits: bool) -> None:
    if fits:
        assert read(PARLEY_PUBLIC_URL=public).oidc is not None
        return
    (found,) = problems({**ISSUER, "PARLEY_PUBLIC_URL": public})
    assert found.startswith(
        "PARLEY_PUBLIC_URL is http://parley.example.org: with PARLEY_OIDC_ISSUER it must begin with"
    )


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://localhost/realms/x", "http://[::1]:1"])
def test_issuer__on_this_machine__may_be_plain(url: str) -> None:
    assert oidc.issuer(url) == url


def test_environment_keys__are_judged_as_the_catalog_does() -> None:
    assert f"^{oidc._ENVIRONMENT.pattern}$" == ENVIRONMENT_KEY_PATTERN

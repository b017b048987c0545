"""Which chains of certificates still lead to an authority, once the file of the authorities has changed."""

from pathlib import Path

import pytest

from adsserver.authorities import Authorities
from tests.support.certificates import Authority, replace_file

PAY = "spiffe://td.example/pay"
ROOT, OTHER = Authority("root"), Authority("other")
MIDDLE = Authority("middle", ROOT)
LEAF = ROOT.issue(PAY)[1]
BY_MIDDLE = MIDDLE.issue(PAY)[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_bytes(ROOT.pem())
    return path


def changed(file: Path, *pems: bytes) -> Authorities:
    """Authorities whose file holds this since they were first read."""
    authorities = Authorities(file)
    replace_file(file, b"".join(pems))
    authorities.refresh()
    return authorities


def test_admits__file_did_not_change__what_the_handshake_said(file: Path) -> None:
    authorities = Authorities(file)
    authorities.refresh()

    assert authorities.admits(LEAF)
    assert authorities.admits(b"whatever gRPC took")


# Titled, for certificates are new in every process: the suite's processes must agree on what there is to run.
CHAINS = {
    "by its authority": (LEAF, (ROOT, OTHER), True),
    "by another": (LEAF, (OTHER,), False),
    "by one of the same name": (LEAF, (Authority("root"),), False),
    "with the certificate between": (BY_MIDDLE + MIDDLE.pem(), (ROOT, OTHER), True),
    "in any order": (BY_MIDDLE + ROOT.pem() + MIDDLE.pem(), (OTHER, ROOT), True),
    "trusted in the middle": (BY_MIDDLE + MIDDLE.pem(), (MIDDLE, OTHER), True),
    "without the certificate between": (BY_MIDDLE, (ROOT, OTHER), False),
    "with the certificate between, by another": (BY_MIDDLE + MIDDLE.pem(), (OTHER,), False),
    "somebody else's certificate beside one's own": (LEAF + BY_MIDDLE, (MIDDLE, OTHER), False),
    "no certificate": (b"no certificate", (ROOT, OTHER), False),
    "too long": (LEAF + MIDDLE.pem() * 11, (ROOT, OTHER), False),
}


@pytest.mark.parametrize(("chain", "anchors", "admitted"), CHAINS.values(), ids=CHAINS)
def test_admits__file_changed__what_leads_to_an_authority_of_now(
    file: Path, chain: bytes, anchors: tuple[Authority, ...], *, admitted: bool
) -> None:
    authorities = changed(file, *(each.pem() for each in anchors))

    assert authorities.admits(chain) is admitted
    assert authorities.admits(chain) is admitted  # also when it is remembered


def test_admits__authority_comes_back__is_admitted_again(file: Path) -> None:
    authorities = changed(file, OTHER.pem())
    assert not authorities.admits(LEAF)

    replace_file(file, ROOT.pem())
    authorities.refresh()

    assert authorities.admits(LEAF)


@pytest.mark.parametrize("data", [b"", b"no certificate"])
def test_refresh__file_is_of_no_use__those_in_force_stay(file: Path, data: bytes) -> None:
    authorities = changed(file, OTHER.pem())

    replace_file(file, data)
    authorities.refresh()
    file.unlink()
    authorities.refresh()

    assert authorities.admits(OTHER.issue(PAY)[1])
    assert not authorities.admits(LEAF)

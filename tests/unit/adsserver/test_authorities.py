"""Which chains of certificates still lead to an authority, once the file of the authorities has changed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from adsserver.identity.authorities import Authorities, Chain, presented
from tests.support.certificates import MINUTE, Authority, replace_file
from tests.support.figures import measured
from xdscore.limits import Limits

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


async def changed(file: Path, *pems: bytes, now: Callable[[], float] | None = None) -> Authorities:
    """Authorities whose file holds this since they were first read."""
    authorities = Authorities(file, now) if now is not None else Authorities(file)
    replace_file(file, b"".join(pems))
    await authorities.refresh()
    return authorities


def chain(own: bytes, others: bytes = b"") -> Chain:
    return presented(own, others, Limits(client_certificates=20))


async def test_admits__file_did_not_change__what_the_handshake_said(file: Path) -> None:
    authorities = Authorities(file)
    await authorities.refresh()

    assert await authorities.admits(chain(LEAF))
    assert await authorities.admits(chain(b"whatever gRPC took"))


# Titled, for certificates are new in every process: the suite's processes must agree on what there is to run.
CHAINS = {
    "by its authority": (LEAF, b"", (ROOT, OTHER), True),
    "by another": (LEAF, b"", (OTHER,), False),
    "by another, which is beside it": (LEAF, OTHER.pem(), (OTHER,), False),
    "by one of the same name": (LEAF, b"", (Authority("root"),), False),
    "with the certificate between": (BY_MIDDLE, MIDDLE.pem(), (ROOT, OTHER), True),
    "in any order": (BY_MIDDLE, ROOT.pem() + MIDDLE.pem(), (OTHER, ROOT), True),
    "itself once more": (LEAF, LEAF, (ROOT,), True),
    "trusted in the middle": (BY_MIDDLE, MIDDLE.pem(), (MIDDLE, OTHER), True),
    "without the certificate between": (BY_MIDDLE, b"", (ROOT, OTHER), False),
    "with the certificate between, by another": (BY_MIDDLE, MIDDLE.pem(), (OTHER,), False),
    "somebody else's certificate beside one's own": (LEAF, BY_MIDDLE, (MIDDLE, OTHER), False),
    "cross-signed by two": (BY_MIDDLE, Authority("middle", OTHER, MIDDLE.key).pem() + MIDDLE.pem(), (ROOT,), True),
    "no certificate": (b"no certificate", b"", (ROOT, OTHER), False),
    "what cannot be read beside it": (LEAF, OTHER.pem().replace(b"M", b"!"), (ROOT,), True),
    "what cannot be read in place of it": (LEAF.replace(b"M", b"!"), LEAF, (ROOT,), False),
    "trusted itself": (LEAF, b"", (OTHER, LEAF), True),
}


@pytest.mark.parametrize(("own", "others", "anchors", "admitted"), CHAINS.values(), ids=CHAINS)
async def test_admits__file_changed__what_leads_to_an_authority_of_now(
    file: Path, own: bytes, others: bytes, anchors: tuple[Authority | bytes, ...], *, admitted: bool
) -> None:
    authorities = await changed(file, *(each if isinstance(each, bytes) else each.pem() for each in anchors))

    assert await authorities.admits(chain(own, others)) is admitted
    assert await authorities.admits(chain(own, others)) is admitted  # also when it is remembered


def _usage(*, signs: bool) -> x509.KeyUsage:
    others = dict.fromkeys(
        (
            "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
            "encipher_only", "decipher_only",
        ),
        False,
    )  # fmt: skip
    return x509.KeyUsage(key_cert_sign=signs, crl_sign=True, **others)


def _bound(permitted: str = "", excluded: str = "") -> x509.NameConstraints:
    trees = [[x509.UniformResourceIdentifier(each)] if each else None for each in (permitted, excluded)]
    return x509.NameConstraints(*trees)


# An address of X.400, which cryptography refuses to read with an error of its own.
UNREADABLE = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex("3004a3020500"))
UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
# What the certificate between is like, and whether it may stand behind a client (RFC 5280, 6.1.4).
BETWEEN: dict[str, tuple[dict[str, Any], bool]] = {
    "as usual": ({"extensions": [(_usage(signs=True), True)]}, True),
    "ended": ({"ends": -MINUTE}, False),
    "not in force yet": ({"begins": MINUTE}, False),
    "no authority": ({"ca": False}, False),
    "may sign no certificates": ({"extensions": [(_usage(signs=False), True)]}, False),
    "right before clients only": ({"path_length": 0}, True),
    "for servers only": ({"extensions": [(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)]}, False),
    "for clients": ({"extensions": [(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)]}, True),
    "of our trust domain": ({"extensions": [(_bound("TD.example"), True)]}, True),
    "of domains under ours": ({"extensions": [(_bound(".example"), True)]}, True),
    "of another trust domain": ({"extensions": [(_bound("other.example"), True)]}, False),
    "of another than ours": ({"extensions": [(_bound(excluded="td.example"), True)]}, False),
    "bound to host names": ({"extensions": [(x509.NameConstraints([x509.DNSName("other")], None), True)]}, True),
    "insists on what nobody knows": ({"extensions": [(UNKNOWN, True)]}, False),
    "has what cannot be read": ({"extensions": [(UNREADABLE, False)]}, False),
    "has what nobody knows": ({"extensions": [(UNKNOWN, False)]}, True),
}


@pytest.mark.parametrize(("like", "admitted"), BETWEEN.values(), ids=BETWEEN)
async def test_admits__certificate_between__must_be_in_force_and_entitled(
    file: Path, like: dict[str, Any], *, admitted: bool
) -> None:
    authorities = await changed(file, OTHER.pem(), ROOT.pem())

    assert await authorities.admits(chain(BY_MIDDLE, MIDDLE.again(**like))) is admitted


async def test_admits__authority_bounds_the_length__what_is_longer_is_refused_and_a_new_key_is_not_counted(
    file: Path,
) -> None:
    short = Authority("short")
    second = Authority("second", Authority("first", short))
    renewed = Authority("short", short)
    of_two, of_renewed = second.issue(PAY)[1], renewed.issue(PAY)[1]
    assert second.above is not None
    between = second.pem() + second.above.pem()

    for length, admitted in ((1, False), (2, True)):
        authorities = await changed(file, short.again(path_length=length))
        assert await authorities.admits(chain(of_two, between)) is admitted
    authorities = await changed(file, short.again(path_length=0))
    assert await authorities.admits(chain(of_renewed, renewed.pem()))


# All that lead to each other, in as many ways as can be, and to no authority of now.
@pytest.mark.parametrize("count", [9, 19])
async def test_admits__certificates_that_all_signed_each_other__cost_no_more_than_their_square(
    file: Path, count: int
) -> None:
    authorities = await changed(file, ROOT.pem())
    forged = b"".join(OTHER.again() for _ in range(count))

    started = asyncio.get_running_loop().time()
    assert not await authorities.admits(chain(OTHER.issue(PAY)[1], forged))
    took_s = asyncio.get_running_loop().time() - started

    measured(certificates=count, refused_after_s=took_s)
    assert took_s < 1


async def test_admits__way_ends_sooner_than_the_clients_certificate__is_found_when_it_does(file: Path) -> None:
    times = [time.time()]
    authorities = await changed(file, ROOT.pem(), now=lambda: times[0])
    ending = chain(BY_MIDDLE, MIDDLE.again(ends=MINUTE))
    assert await authorities.admits(ending)

    times[0] += 300

    assert not await authorities.admits(ending)


async def test_admits__signatures_are_being_verified__the_event_loop_goes_on(file: Path) -> None:
    authorities = await changed(file, ROOT.pem())
    done = Event()
    authorities._thread.submit(done.wait)  # whatever takes the thread long

    asking = asyncio.ensure_future(authorities.admits(chain(LEAF)))
    await asyncio.sleep(0.01)
    waited = not asking.done()
    done.set()

    assert waited
    assert await asking


async def test_admits__many_ask_for_one_chain_and_one_goes_away__the_others_are_told(file: Path) -> None:
    authorities = await changed(file, ROOT.pem())
    asking = [asyncio.ensure_future(authorities.admits(chain(BY_MIDDLE, MIDDLE.pem()))) for _ in range(5)]
    await asyncio.sleep(0)

    asking[0].cancel()

    assert await asyncio.gather(*asking[1:]) == [True] * 4


@pytest.mark.parametrize(
    ("own", "others", "text"),
    [
        (LEAF, MIDDLE.pem() * 10, "The client presents 11 certificates; this server takes at most 10"),
        (LEAF, b"x" * 32_768, "this server takes at most 32768."),
    ],
    ids=["many", "large"],
)
def test_presented__more_than_allowed__is_refused_before_anything_is_read(own: bytes, others: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        presented(own, others, Limits())


async def test_admits__authority_comes_back__is_admitted_again(file: Path) -> None:
    authorities = await changed(file, OTHER.pem())
    assert not await authorities.admits(chain(LEAF))

    replace_file(file, ROOT.pem())
    await authorities.refresh()

    assert await authorities.admits(chain(LEAF))


@pytest.mark.parametrize("data", [b"", b"no certificate"])
async def test_refresh__file_is_of_no_use__those_in_force_stay(file: Path, data: bytes) -> None:
    authorities = await changed(file, OTHER.pem())

    replace_file(file, data)
    await authorities.refresh()
    await asyncio.to_thread(file.unlink)
    await authorities.refresh()

    assert await authorities.admits(chain(OTHER.issue(PAY)[1]))
    assert not await authorities.admits(chain(LEAF))

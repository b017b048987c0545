"""A security key in software: answers what a browser asks it (WebAuthn level 3), and wrongly where a test wants."""

import hashlib
import json
import os
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256

_PRESENT, _HAS_CREDENTIAL = 0x01, 0x40


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """One key, with an ES256 credential. `count`: how often it was used, as it says itself."""

    origin: str
    count: int = 0
    id: bytes = field(default_factory=lambda: os.urandom(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to `navigator.credentials.create`; `wrong`: what it says instead of the truth."""
        cose = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]
        public = cbor.encode(dict(cose))
        credential = bytes(16) + struct.pack(">H", len(self.id)) + self.id + public
        data = self._data(str(wrong.get("rp_id", options["rp"]["id"])), _PRESENT | _HAS_CREDENTIAL) + credential
        said = {
            "clientDataJSON": _text(self._client(wrong.get("type", "webauthn.create"), options, wrong)),
            "attestationObject": _text(cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})),
        }
        return self._answer(said)

    def get(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to `navigator.credentials.get`; `wrong`: what it says instead of the truth."""
        self.count = int(wrong.get("count", self.count + 1))
        client = self._client(wrong.get("type", "webauthn.get"), options, wrong)
        data = self._data(str(wrong.get("rp_id", options["rpId"])), int(wrong.get("flags", _PRESENT)))
        signed = data + hashlib.sha256(client).digest()
        key: ec.EllipticCurvePrivateKey = wrong.get("key", self.key)
        said = {
            "clientDataJSON": _text(client),
            "authenticatorData": _text(data),
            "signature": _text(key.sign(signed, ec.ECDSA(hashes.SHA256()))),
        }
        return self._answer(said)

    def _data(self, rp_id: str, flags: int) -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, options: dict[str, Any], wrong: dict[str, Any]) -> bytes:
        said = {
            "type": kind,
            "challenge": wrong.get("challenge", options["challenge"]),
            "origin": wrong.get("origin", self.origin),
        }
        return json.dumps(said).encode()

    def _answer(self, response: dict[str, str]) -> str:
        return json.dumps({"id": _text(self.id), "rawId": _text(self.id), "type": "public-key", "response": response})


def other_challenge(options: dict[str, Any]) -> str:
    """A challenge that nobody gave."""
    return _text(bytes(each ^ 1 for each in urlsafe_b64decode(options["challenge"] + "==")))

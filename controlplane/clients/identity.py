"""Which row is a client's own. Pure, so that an ADS process knows it without asking the database."""

import json
from base64 import b32encode
from hashlib import blake2b

# 120 bits: whoever may choose node ids cannot find one that takes over the row of another client.
_DIGEST_BYTES = 15
CLIENT_ID_CHARS = 24
# A list in JSON, part by part: json.dumps makes an encoder for each list, which takes longer than the hash.
_spelt = json.JSONEncoder().encode


def client_id(*, environment: str, identity: str, node_id: str) -> str:
    """The opaque public id of a client, for URLs, because a node id may hold anything (decisions U14).

    A client is one (environment, identity, node id); the id is a function of the three and says nothing about them.
    """
    exact = f"[{_spelt(environment)}, {_spelt(identity)}, {_spelt(node_id)}]".encode()
    return b32encode(blake2b(exact, digest_size=_DIGEST_BYTES, person=b"parley-client").digest()).decode().lower()

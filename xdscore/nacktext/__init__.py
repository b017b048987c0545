"""Read the texts clients send with a NACK: `attribute` says which resources of the response a text blames.

Pure: text and names in, an `Attribution` out. Called by the engine to narrow its suspects (reliability N2) and by the
digest of incidents. A reader per client family (`grpc_core`, `grpc_go`, `grpc_java`, `grpc_node`, `grpc_rust`, `envoy`)
knows that family's grammar (clients.md section 4), `numbered` and `named_list` know the kinds of list that two families
share, `reading` holds what all share, and `normalise` makes the noise-free text of which fingerprints are made.

Nothing here ever blames a name that was not in the response, a text that was cut never blames whom the whole one does
not, and any text takes linear time.
"""

from xdscore.nacktext.attribution import Attribution, Dialect, attribute

__all__ = ["Attribution", "Dialect", "attribute"]

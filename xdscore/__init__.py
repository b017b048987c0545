"""What every side of Parley agrees on, without Django, gRPC or Redis.

`resource_types` is the one table of xDS types, `names` says what a name may be, `snapshot` holds what an environment
serves at one epoch, `decision` says what one audience gets for one name, `errors` turns a decision into the text a
client reads, `nacktext` reads the texts clients send back. `schema` (manifests, canonical bytes, field rules) is the
only part that uses protobuf.
"""

"""The client's protocol core: watches, responses and time in, notifications and requests out; no input or output.

Read it in this order. `values` are what everybody talks about: statuses, cache states, cache entries. `events` are what
goes in and comes out. `policy` says what a server's features mean. `entry` is one resource: its state, and what its
watchers should see. `collection` is a glob or a wildcard: an entry whose members are entries of their own.
`type_stream` is one resource type on the stream; `sotw` and `delta` are its two variants, and `taken` is what one
response did. `engine` puts them together and owns the stream's life: servers in order, outages, back-off.

Rules of this package: no socket, clock, random number, lock, log or protobuf; time is an argument; every event has an
answer in every state. Rule names: A88, A57, A46, A78 are gRFCs, TP1 and TP3 xRFCs, and letters with a number (B7, F11a)
are those of the protocol reference.
"""

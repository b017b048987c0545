"""The xDS transport protocol as a machine: requests and publications go in, responses and facts come out.

Read it in this order. `events` are the values that go in and come out. `subscription` says what a client asked for.
`publication` says what it may be shown. `ledger` remembers what each response held. `substream` is one resource type on
one stream; it keeps what the client was told either name by name (`known_names` and `by_name`) or as a whole
(`full_state`: SotW LDS, CDS and SRDS). `name_state` has the tables of what can happen to a name, `memory` the states of
all names of a stream, `looking` what a look at one finds. `sotw` and `delta` read the requests of the two variants.
`rejection` decides what a NACK blames, `refusals` what is sent instead. `session` is one stream: it puts the
sub-streams in order, make before break.

Rules of this package: no socket, clock, random number, lock, log or protobuf; time is an argument; effects are values.
NOT_FOUND and PERMISSION_DENIED come from `xdscore.decision.decide` and from nowhere else. Rule numbers (A1 to L) are
those of the protocol reference.
"""

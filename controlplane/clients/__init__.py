"""The data planes as seen by the ADS servers: who is connected, what each was sent, acknowledged and rejected.

`facts` are the values an ADS process reports; `services` writes them in batches with plain SQL (decisions part 7,
"Facts") and hands what waits to whoever digests it; `selectors` answers the questions of the API and the pages.
`families`, `identity` and `foreign_text` are pure: what a client is called, which row is its own, and how its words are
made harmless.
"""

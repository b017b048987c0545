"""The live tail: what happens on the streams of an environment, told while somebody watches (interfaces.md 8.7).

A watcher is a request of the web process that stays open. It announces what it wants over the broker once a second; ADS
processes that hear it send what happens to its channel, and forget it when it announces nothing more. Nothing is
stored, nobody waits, and nothing depends on it (law 4): without the broker there is no tail, and nothing else changes.
What is sent is sealed with the keys of the installation, so that whoever reads the broker learns nothing of it, and
whoever writes there tells nothing.
"""

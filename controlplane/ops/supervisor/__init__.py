"""`manage.py up`: starts the whole of Parley on one machine, keeps it running, and leaves nothing behind.

    preflight   what can be refused before anything exists: ports, files, a second supervisor
    locks       one supervisor for a home; and whether processes of an earlier one still end
    programs    which processes there are, in words: command, readiness, patience (pure)
    guard       a few lines of its own process around each of them: ends it when the supervisor is gone
    child       one process: started, watched, started again, stopped
    backoff     when to start again (pure)
    readiness   how to see that a process really serves
    output      lines of all processes: on the screen with a prefix, in files with rotation
    valkey      the embedded broker: its binary and where its socket may be
    prepared    whether the database was made ready by this code already
    facts       what a person needs to know once all runs
    run         the order of starting and stopping

It runs without Django: preparing the database is a process of its own (`manage.py prepare`).
"""

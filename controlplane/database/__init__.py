"""How the one database is used: its two aliases, tables whose rows are only ever added, what must be let go of before
somebody outside is waited for, and the places at which tests end a process.
"""

"""Does this process fit the installation: its keys, the tables and its clock against the database, which all share.

`judging` is pure, `look` asks the database, `watch` does so again and again in every process and tells the others.
"""

"""Looks for things of every kind by words: names, contents, owners, rules, messages, people.

`selectors` asks for all kinds; `sources` says of each kind where its words stand and who may find it; `contents` looks
into resources; `values` is what is asked and found, and pure.
"""

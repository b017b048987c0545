"""How resources, environments and changes stand: published, waiting, stalled, refused, quarantined, withheld or lost.

`derivation` decides it of a resource from facts, `environments` and `changes` of what holds and wrote them; `selectors`
reads these facts, counts resources by them and filters lists. Console, REST, metrics and through REST `xdsctl` say what
stands here, and derive nothing of their own.
"""

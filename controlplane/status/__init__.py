"""How a resource stands, and why: published, waiting, stalled, refused, quarantined or withheld.

`derivation` decides it from facts, `selectors` reads these facts for a page of resources and filters a list by it.
Console, REST and through it `xdsctl` say what stands here, and derive nothing of their own.
"""

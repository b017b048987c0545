"""What operators say: environments, resources, append-only revisions with their bytes, changes, quarantines, proofs."""

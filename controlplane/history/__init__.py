"""What fleets did over time: clients by state, NACKs and errors a minute; bounded (truth.md H6)."""

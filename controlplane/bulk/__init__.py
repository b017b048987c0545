"""One act upon many resources at once, as one change: which are meant, who may, and the write."""

"""From SQLite to PostgreSQL with everything: every row of every table, in one transaction, compared before it ends."""

from controlplane.ops.transfer.copying import TransferError, rows_copy, target_prepare

__all__ = ["TransferError", "rows_copy", "target_prepare"]

-- Entries of a period, in the order of a statement (custody/statements). Without it, a statement
-- would read every posting of a wallet.
create index ledger_entries_time on ledger_entries (workspace_id, created_at, id);

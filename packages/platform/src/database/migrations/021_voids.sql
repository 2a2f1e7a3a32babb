-- The signer nodes' signed voids of a transaction that failed before it was paid: shown to its caller, who verifies them.
alter table transactions add column voids jsonb not null default '[]';

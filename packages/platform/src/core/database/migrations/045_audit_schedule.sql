-- When a worker runs the next audit (server/audit/loop.ts); null until the first worker has set it.
alter table installation add column audit_due_at timestamptz;

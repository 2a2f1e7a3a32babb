-- Why a pending transaction waits, as the API shows it: {"code", "reason", "since"}
-- (engine/waiting.ts). Null: it does not wait.
alter table transactions add column waiting jsonb;

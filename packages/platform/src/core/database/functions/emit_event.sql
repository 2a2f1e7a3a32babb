-- Adds to the outbox.
create or replace function emit_event(p_workspace uuid, p_sub_account uuid, p_type text, p_payload jsonb) returns void
language sql as $$
  insert into events (workspace_id, sub_account_id, type, payload) values (p_workspace, p_sub_account, p_type, p_payload)
$$;

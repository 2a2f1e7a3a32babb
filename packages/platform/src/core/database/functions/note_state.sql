-- Notes each state of a transaction with the time and reason that the row has then.
create or replace function note_state() returns trigger
language plpgsql as $$
begin
  insert into transaction_states (workspace_id, transaction_id, state, reason, at)
    values (new.workspace_id, new.id, new.state, new.failure_reason, new.updated_at);
  return null;
end $$;

create or replace trigger transactions_first_state after insert on transactions
  for each row execute function note_state();
create or replace trigger transactions_next_state after update of state on transactions
  for each row when (old.state is distinct from new.state) execute function note_state();

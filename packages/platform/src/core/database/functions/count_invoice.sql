-- Keeps the counts of a sub-account's list of invoices: see migrations/019_list_counts.sql.
create or replace function count_invoice() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('invoices', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('status', old.status, 'exception', old.exception), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('invoices', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('status', new.status, 'exception', new.exception), 1);
  end if;
  return null;
end $$;

create or replace trigger invoices_counted after insert or delete on invoices
  for each row execute function count_invoice();
create or replace trigger invoices_recounted after update on invoices
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.status is distinct from new.status or old.exception is distinct from new.exception
  ) execute function count_invoice();

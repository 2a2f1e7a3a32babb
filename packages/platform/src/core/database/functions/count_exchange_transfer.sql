-- Keeps the counts of a sub-account's list of exchange transfers: see
-- migrations/019_list_counts.sql.
create or replace function count_exchange_transfer() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('exchange_transfers', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('account_id', old.account_id::text, 'asset', old.asset, 'direction', old.direction, 'status', old.status), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('exchange_transfers', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('account_id', new.account_id::text, 'asset', new.asset, 'direction', new.direction, 'status', new.status), 1);
  end if;
  return null;
end $$;

create or replace trigger exchange_transfers_counted after insert or delete on exchange_transfers
  for each row execute function count_exchange_transfer();
create or replace trigger exchange_transfers_recounted after update on exchange_transfers
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.account_id is distinct from new.account_id or old.asset is distinct from new.asset or
    old.direction is distinct from new.direction or old.status is distinct from new.status
  ) execute function count_exchange_transfer();

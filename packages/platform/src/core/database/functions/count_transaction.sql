-- Keeps the counts of a sub-account's list of transactions: see migrations/019_list_counts.sql.
create or replace function count_transaction() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.sub_account_id is not null then
    insert into list_deltas (list, owner, bucket, dims, n) values ('transactions', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('kind', old.kind, 'asset', old.asset, 'status', old.status, 'source_type', old.source_type, 'destination_type',
        old.destination_type), -1);
  end if;
  if tg_op <> 'DELETE' and new.sub_account_id is not null then
    insert into list_deltas (list, owner, bucket, dims, n) values ('transactions', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('kind', new.kind, 'asset', new.asset, 'status', new.status, 'source_type', new.source_type, 'destination_type',
        new.destination_type), 1);
  end if;
  return null;
end $$;

create or replace trigger transactions_counted after insert or delete on transactions
  for each row execute function count_transaction();
create or replace trigger transactions_recounted after update on transactions
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.kind is distinct from new.kind or old.asset is distinct from new.asset or old.status is distinct from new.status or
    old.source_type is distinct from new.source_type or old.destination_type is distinct from new.destination_type
  ) execute function count_transaction();

-- Keeps the counts of a sub-account's list of orders: see migrations/019_list_counts.sql.
create or replace function count_order() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('orders', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('account_id', old.account_id::text, 'exchange', old.exchange, 'market', old.market, 'side', old.side, 'type',
        old.type, 'status', old.status), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('orders', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('account_id', new.account_id::text, 'exchange', new.exchange, 'market', new.market, 'side', new.side, 'type',
        new.type, 'status', new.status), 1);
  end if;
  return null;
end $$;

create or replace trigger orders_counted after insert or delete on orders
  for each row execute function count_order();
create or replace trigger orders_recounted after update on orders
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.account_id is distinct from new.account_id or old.exchange is distinct from new.exchange or
    old.market is distinct from new.market or old.side is distinct from new.side or old.type is distinct from new.type or
    old.status is distinct from new.status
  ) execute function count_order();

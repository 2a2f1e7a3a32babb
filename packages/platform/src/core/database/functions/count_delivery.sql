-- Keeps the counts of a webhook's list of deliveries: see migrations/019_list_counts.sql.
create or replace function count_delivery() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('webhook_deliveries', old.webhook_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('status', old.status, 'type', old.type), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('webhook_deliveries', new.webhook_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('status', new.status, 'type', new.type), 1);
  end if;
  return null;
end $$;

create or replace trigger webhook_deliveries_counted after insert or delete on webhook_deliveries
  for each row execute function count_delivery();
create or replace trigger webhook_deliveries_recounted after update on webhook_deliveries
  for each row when (
    old.webhook_id is distinct from new.webhook_id or old.created_at is distinct from new.created_at or
    old.status is distinct from new.status or old.type is distinct from new.type
  ) execute function count_delivery();

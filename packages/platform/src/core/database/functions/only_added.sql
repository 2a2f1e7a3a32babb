-- Refuses every change and deletion, for tables that are evidence.
create or replace function only_added() returns trigger
language plpgsql as $$
begin
  raise exception 'rows of % are only added', tg_table_name;
end $$;

create or replace trigger wallet_status_changes_kept before update or delete on wallet_status_changes
  for each row execute function only_added();

create or replace trigger audit_log_kept before update or delete on audit_log
  for each row execute function only_added();

create or replace trigger reserve_snapshots_kept before update or delete on reserve_snapshots
  for each row execute function only_added();

create or replace trigger reserve_leaves_kept before update or delete on reserve_leaves
  for each row execute function only_added();

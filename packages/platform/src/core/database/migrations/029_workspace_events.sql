-- Events, webhooks and their deliveries begin their keys with the workspace, as
-- 026_workspace_keys.sql has it of transactions. Each row says its workspace already.

set local maintenance_work_mem = '256MB';

-- Recreates the references, whatever their names are.
do $$
declare
  reference record;
  told regclass[] := array['events', 'webhooks', 'webhook_deliveries'];
begin
  for reference in select conrelid::regclass as of_table, conname from pg_constraint where contype = 'f'
    and (confrelid = any(told) or conrelid = any(told) and confrelid = 'sub_accounts'::regclass) loop
    execute format('alter table %s drop constraint %I', reference.of_table, reference.conname);
  end loop;
end $$;

-- The log has one order over all workspaces: events_position stays, and events_unpublished, by
-- which places in it are given.
alter table events drop constraint events_pkey;
drop index events_uid, events_object, events_log;
create unique index events_uid on events (workspace_id, uid);
create index events_object on events (workspace_id, object, position) where object is not null;
create index events_log on events (workspace_id, position) where position is not null;

alter table webhooks drop constraint webhooks_pkey;
drop index webhooks_invoice_origin;
create unique index webhooks_invoice_origin on webhooks (workspace_id, sub_account_id, invoice_origin) where invoice_origin is not null;
-- By which anybody's is found: to say that it is another workspace's. So is a delivery.
create index webhooks_text on webhooks ((id::text));

alter table webhook_deliveries drop constraint webhook_deliveries_pkey;
do $$
declare
  one record;
begin
  for one in select conname from pg_constraint where conrelid = 'webhook_deliveries'::regclass and contype = 'u' loop
    execute format('alter table webhook_deliveries drop constraint %I', one.conname);
  end loop;
end $$;
drop index webhook_deliveries_fresh, webhook_deliveries_again, webhook_deliveries_leased, webhook_deliveries_object,
  webhook_deliveries_waiting, webhook_deliveries_shown;
create index webhook_deliveries_text on webhook_deliveries ((id::text));
create index webhook_deliveries_fresh on webhook_deliveries (workspace_id, webhook_id, position) where status = 'pending' and tries = 0;
create index webhook_deliveries_again on webhook_deliveries (workspace_id, webhook_id, next_at) where status = 'pending' and tries > 0;
create index webhook_deliveries_leased on webhook_deliveries (workspace_id, webhook_id) where lease_token is not null;
create index webhook_deliveries_object on webhook_deliveries (workspace_id, webhook_id, object, position)
  where status = 'pending' and tries <= 1;
create index webhook_deliveries_waiting on webhook_deliveries (workspace_id, webhook_id) where status = 'pending';
create index webhook_deliveries_shown on webhook_deliveries (workspace_id, webhook_id, created_at desc, id desc);
alter table webhook_deliveries add constraint webhook_deliveries_once unique (workspace_id, webhook_id, event_uid);

-- Primary keys come last, so that a look at one row by its id is by them.
alter table events add primary key (workspace_id, id);
alter table webhooks add primary key (workspace_id, id);
alter table webhook_deliveries add primary key (workspace_id, id);

-- Who names a row names its workspace. An event of no sub-account is of the whole workspace.
alter table events
  add constraint events_of foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table webhooks
  add constraint webhooks_of foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table webhook_deliveries
  add constraint webhook_deliveries_of foreign key (workspace_id, webhook_id) references webhooks on delete cascade;

-- The log of events, and what is sent of it to callers' endpoints.

-- IDs are assigned before the commit, so a reader that pages by ID misses later commits. A publisher
-- gives each committed event its place in the log, without gaps, and its object's version: 1, 2, 3
-- …
alter table events
  add column if not exists uid uuid not null default gen_random_uuid(),
  add column if not exists position bigint,
  add column if not exists object text,
  add column if not exists version bigint;
create unique index if not exists events_uid on events (uid);
create unique index if not exists events_position on events (position) where position is not null;
create index if not exists events_unpublished on events (id) where position is null;
create index if not exists events_log on events (workspace_id, position) where position is not null;
create index if not exists events_age on events (created_at);

-- How far the log goes.
create table if not exists event_log (
  one boolean primary key default true check (one),
  last bigint not null default 0
);
insert into event_log default values on conflict do nothing;

-- The version of each object's latest event. Events are deleted after a while; versions go on.
create table if not exists event_objects (
  workspace_id uuid not null references workspaces,
  object text not null,
  version bigint not null,
  primary key (workspace_id, object)
);

-- What signs deliveries for those who check `x-signature`: one RSA pair, made at the first start.
-- The private half is sealed.
create table if not exists webhook_keys (
  one boolean primary key default true check (one),
  public_key_pem text not null,
  sealed_private_key bytea not null,
  created_at timestamptz not null default now()
);

create table if not exists webhooks (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  url text not null,
  -- Names, `group.*` or `*`.
  events text[] not null check (cardinality(events) > 0),
  description text,
  format text not null check (format in ('standard', 'classic')),
  disabled_at timestamptz,
  disabled_reason text,
  sealed_secret bytea not null,
  secret_made_at timestamptz not null,
  -- After a rotation, the time until which the previous secret also signs.
  sealed_previous_secret bytea,
  previous_until timestamptz,
  -- Attempts that failed since one succeeded.
  failures integer not null default 0,
  -- It is left alone until then: so much has failed.
  paused_until timestamptz,
  -- Events up to this id were there before it, or came while it was disabled.
  after_event bigint not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index if not exists webhooks_owner on webhooks (workspace_id, sub_account_id);

create table if not exists webhook_deliveries (
  id uuid primary key,
  webhook_id uuid not null references webhooks on delete cascade,
  workspace_id uuid not null,
  -- `webhook-id`: the event's uid.
  event_uid uuid not null,
  type text not null,
  object text not null,
  position bigint not null,
  -- The very bytes that are signed and sent, on every try.
  body text not null,
  status text not null check (status in ('pending', 'delivered', 'failed')),
  -- Tries begun; and the latest of them, each as it is shown.
  tries integer not null default 0,
  tries_left integer not null,
  attempts jsonb not null default '[]',
  next_at timestamptz,
  -- Whoever tries it now; `next_at` is then the end of his lease.
  lease_token uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (webhook_id, event_uid),
  check ((status = 'pending') = (next_at is not null))
);
create index if not exists webhook_deliveries_fresh on webhook_deliveries (webhook_id, position) where status = 'pending' and tries = 0;
create index if not exists webhook_deliveries_again on webhook_deliveries (webhook_id, next_at) where status = 'pending' and tries > 0;
create index if not exists webhook_deliveries_leased on webhook_deliveries (webhook_id) where lease_token is not null;
create index if not exists webhook_deliveries_object on webhook_deliveries (webhook_id, object, position)
  where status = 'pending' and tries <= 1;
create index if not exists webhook_deliveries_waiting on webhook_deliveries (webhook_id) where status = 'pending';
create index if not exists webhook_deliveries_shown on webhook_deliveries (webhook_id, created_at desc, id);
create index if not exists webhook_deliveries_age on webhook_deliveries (created_at);

-- Who uses the control panel, and what it did: people, how they sign in, sessions, roles,
-- invitations, the audit log.

create table if not exists people (
  id uuid primary key,
  -- In lower case: the one name that two people cannot share.
  email text not null unique check (email = lower(email)),
  name text not null,
  -- scrypt, with its parameters and salt. A password signs in only together with a TOTP.
  password_hash text,
  -- Sealed; see src/secrets.ts.
  totp_secret bytea,
  -- The last 30-second step whose code was taken: none is taken twice.
  totp_step bigint,
  created_at timestamptz not null
);

create table if not exists passkeys (
  id uuid primary key,
  person_id uuid not null references people,
  credential_id text not null unique,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null default '{}',
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index if not exists passkeys_person on passkeys (person_id);

-- SHA-256 of codes of 80 random bits, each taken once.
create table if not exists recovery_codes (
  person_id uuid not null references people,
  code_hash bytea not null,
  used_at timestamptz,
  primary key (person_id, code_hash)
);

-- Tokens of 256 random bits, as SHA-256.
create table if not exists sessions (
  id uuid primary key,
  person_id uuid not null references people,
  token_hash bytea not null unique,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  -- The last proof of a factor: what a factor of its own can be added or removed after.
  confirmed_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  ip text not null,
  user_agent text not null
);
create index if not exists sessions_person on sessions (person_id) where ended_at is null;
create index if not exists sessions_expiry on sessions (expires_at);

-- What was begun and waits for a second step: a sign-in for its code, a passkey for its answer.
-- Tokens as SHA-256.
create table if not exists sign_in_steps (
  token_hash bytea primary key,
  kind text not null,
  person_id uuid references people,
  data jsonb not null default '{}',
  tries integer not null default 0,
  expires_at timestamptz not null
);
create index if not exists sign_in_steps_expiry on sign_in_steps (expires_at);

-- Failed sign-ins in a row, by an e-mail address (whether or not somebody has it) and by a client's
-- address.
create table if not exists sign_in_failures (
  subject text primary key,
  failures integer not null,
  locked_until timestamptz,
  last_at timestamptz not null
);

create table if not exists memberships (
  person_id uuid not null references people,
  workspace_id uuid not null references workspaces,
  role text not null check (role in ('owner', 'admin', 'operator', 'viewer')),
  created_at timestamptz not null,
  primary key (person_id, workspace_id)
);
create index if not exists memberships_workspace on memberships (workspace_id);

-- A link that is used once. Without a workspace: the very first owner's, who names it. With a
-- person: that person's new beginning, where every factor was lost.
create table if not exists invitations (
  id uuid primary key,
  token_hash bytea not null unique,
  workspace_id uuid references workspaces,
  role text not null check (role in ('owner', 'admin', 'operator', 'viewer')),
  email text,
  person_id uuid references people,
  -- Null: the operator, by his command or the start.
  invited_by uuid references people,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  revoked_at timestamptz
);
create index if not exists invitations_workspace on invitations (workspace_id);

-- The newest line of each workspace's audit log: what the next one is chained to.
create table if not exists audit_heads (
  workspace_id uuid primary key references workspaces,
  seq bigint not null,
  hash bytea not null
);

-- Each line's hash is SHA-256 over its canonical JSON, the hash before it included. Rows are only
-- ever added: functions/only_added.sql.
create table if not exists audit_log (
  workspace_id uuid not null references workspaces,
  seq bigint not null check (seq >= 1),
  at timestamptz not null,
  actor_type text not null check (actor_type in ('person', 'api_user', 'operator')),
  actor_id text,
  actor_name text not null,
  session_id uuid,
  ip text,
  action text not null,
  object text,
  details jsonb not null,
  prev_hash bytea not null,
  hash bytea not null,
  primary key (workspace_id, seq)
);
create index if not exists audit_log_at on audit_log (workspace_id, at);

-- A person's filters of a list.
create table if not exists saved_views (
  id uuid primary key,
  person_id uuid not null references people,
  workspace_id uuid not null references workspaces,
  name text not null,
  page text not null,
  query text not null,
  at integer not null
);
create index if not exists saved_views_person on saved_views (person_id, workspace_id);

alter table api_users add column if not exists label text;
alter table api_users add column if not exists person_id uuid references people;
alter table api_users add column if not exists ip_allow_list text[] not null default '{}';
alter table api_users add column if not exists last_used_at timestamptz;

-- API users that the panel asked for. They become such by the operator's hand, at the nodes and
-- here.
create table if not exists api_user_requests (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account text not null,
  role text not null check (role in ('full', 'read-only')),
  public_key_pem text not null,
  key_fingerprint text not null,
  label text,
  rate_limit integer check (rate_limit > 0),
  ip_allow_list text[] not null default '{}',
  -- Whose own it will be.
  person_id uuid references people,
  requested_by uuid not null references people,
  created_at timestamptz not null,
  -- What it became.
  api_key uuid references api_users,
  withdrawn_at timestamptz
);
create index if not exists api_user_requests_pending on api_user_requests (workspace_id, key_fingerprint)
  where api_key is null and withdrawn_at is null;

-- Every state that a transaction was in: written by a trigger (functions/note_state.sql), so that
-- no step forgets it.
create table if not exists transaction_states (
  id bigint generated always as identity primary key,
  -- No foreign key: rows of transactions are never deleted, and this is written on every step of
  -- each.
  transaction_id uuid not null,
  state text not null,
  reason text,
  at timestamptz not null
);
create index if not exists transaction_states_transaction on transaction_states (transaction_id, id);
insert into transaction_states (transaction_id, state, reason, at)
  select id, state, failure_reason, updated_at from transactions order by updated_at;

-- Which two nodes signed.
alter table chain_transactions add column if not exists signed_by integer[];

-- What was told of one object, for the page that tells its story.
create index if not exists events_object on events (object, position) where object is not null;

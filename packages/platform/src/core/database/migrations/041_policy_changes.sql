-- Changes of policy documents that people have proposed over the API (custody/policies/changes). The
-- signer nodes verify every signature; these tables only collect them.
create table policy_changes (
  workspace_id uuid not null references workspaces (id),
  id uuid not null,
  state text not null check (state in
    ('open', 'approved', 'held', 'in_force', 'rejected', 'vetoed', 'refused', 'expired', 'ended')),
  -- A background job must present something to the signer nodes, or observe them.
  is_due boolean not null default true,
  number bigint not null,
  hash text not null check (length(hash) = 64),
  -- Hash of the document in force that it changes.
  previous text not null check (length(previous) = 64),
  -- Canonical text.
  document text not null check (octet_length(document) <= 262144),
  -- How it differs, [{"path", "tendency", "sentence"}], and what lint warns of, [{"path", "message"}].
  changes jsonb not null,
  warnings jsonb not null,
  comment text not null check (length(comment) <= 1000),
  -- Time that every approval names, and time at which the nodes bring it into force. Unix seconds.
  acts_at bigint not null,
  nodes_act_at bigint,
  -- Nodes that hold it, as pending or in force.
  held jsonb not null default '[]',
  -- The quorums, [{"group", "k", "have"}], and the keys without proof, [{"person", "key"}].
  needs jsonb not null,
  missing jsonb not null,
  -- Why it ended, or why the nodes do not hold it yet.
  reason text check (length(reason) <= 2000),
  -- API key that sent it; null: a command of the operator.
  proposed_by text,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (workspace_id, id)
);
create index policy_changes_list on policy_changes (workspace_id, created_at desc, id desc);
create index policy_changes_due on policy_changes (workspace_id, id) where is_due;
-- One proposal of a document at a time.
create unique index policy_changes_document on policy_changes (workspace_id, hash)
  where state in ('open', 'approved', 'held');
-- Signed statements about a change, as JSON text: approvals, proofs of possession and vetoes.
create table policy_change_statements (
  workspace_id uuid not null,
  change_id uuid not null,
  kind text not null check (kind in ('change', 'possession', 'veto')),
  person text not null check (length(person) <= 64),
  key text not null check (length(key) <= 64),
  signed text not null check (octet_length(signed) <= 8192),
  -- Time at which two nodes had recorded a veto.
  delivered_at timestamptz,
  created_at timestamptz not null,
  primary key (workspace_id, change_id, kind, person, key),
  foreign key (workspace_id, change_id) references policy_changes (workspace_id, id)
);
-- Stops that were sent over the API, whose signed text the end of the stop requires.
create table policy_stops (
  workspace_id uuid not null references workspaces (id),
  -- Hash of the signed statement.
  hash text not null check (length(hash) = 64),
  -- new: no node has recorded it yet; ending: the approvals of its end are complete.
  state text not null check (state in ('new', 'stopped', 'ending', 'ended', 'refused')),
  -- Null: the whole workspace.
  sub_account text check (length(sub_account) <= 200),
  person text not null check (length(person) <= 64),
  reason text not null check (length(reason) <= 200),
  -- As signed, in Unix seconds.
  signed_at bigint not null,
  signed text not null check (octet_length(signed) <= 8192),
  created_at timestamptz not null,
  primary key (workspace_id, hash)
);
create index policy_stops_due on policy_stops (workspace_id, hash) where state in ('new', 'ending');
-- Signed approvals of the end of a stop, as JSON text.
create table policy_resumes (
  workspace_id uuid not null,
  stop_hash text not null,
  person text not null check (length(person) <= 64),
  key text not null check (length(key) <= 64),
  signed text not null check (octet_length(signed) <= 8192),
  created_at timestamptz not null,
  primary key (workspace_id, stop_hash, person, key),
  foreign key (workspace_id, stop_hash) references policy_stops (workspace_id, hash)
);

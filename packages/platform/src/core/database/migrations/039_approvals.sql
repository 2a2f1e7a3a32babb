-- Transfers that wait for approvals of people, and their decisions (custody/approvals). The signer
-- nodes verify each approval again; these tables only collect them.
create table approval_requests (
  workspace_id uuid not null,
  transaction_id uuid not null,
  sub_account_id uuid not null,
  state text not null check (state in ('open', 'approved', 'rejected', 'expired', 'ended')),
  -- What each approval signs, without the fields of its signer, as a signer node returned it.
  statement jsonb not null,
  -- The quorums: [{"group", "k", "have"}].
  needs jsonb not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (workspace_id, transaction_id),
  foreign key (workspace_id, transaction_id) references transactions (workspace_id, id),
  foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id)
);
create index approval_requests_list on approval_requests (
  workspace_id, sub_account_id, state, created_at desc, transaction_id desc);
-- The latest decision of each person. Times as signed, in Unix seconds.
create table approvals (
  workspace_id uuid not null,
  transaction_id uuid not null,
  person text not null check (length(person) <= 64),
  decision text not null check (decision in ('approve', 'reject')),
  key text not null check (length(key) <= 64),
  signed_at bigint not null,
  expires_at bigint not null,
  signature text not null check (length(signature) <= 100),
  created_at timestamptz not null,
  primary key (workspace_id, transaction_id, person),
  foreign key (workspace_id, transaction_id) references approval_requests (workspace_id, transaction_id)
);

-- Standing rules by which incoming funds go on to one destination.

create table forward_rules (
  -- Follows from the caller's signed request, so that nodes and platform name it alike.
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  wallet_id uuid not null references wallets,
  asset text not null,
  network text not null,
  min_amount numeric(78, 0) not null check (min_amount > 0),
  daily_cap numeric(78, 0) not null check (daily_cap >= min_amount),
  destination text not null,
  address_tag text,
  expires_at timestamptz not null,
  -- PENDING: not yet on record at two nodes. ENDING: not yet ended at two nodes.
  state text not null default 'PENDING' check (state in ('PENDING', 'ACTIVE', 'PAUSED', 'EXPIRED', 'ENDING', 'ENDED')),
  -- The caller's signed requests, raw, as in transactions; and the nodes' receipts of the first.
  request jsonb not null,
  receipts jsonb not null default '[]',
  end_request jsonb,
  -- Hashes of forwards that the signer nodes named as signed when the rule was ended.
  end_hashes jsonb not null default '[]',
  -- Came in and was not forwarded yet.
  waiting numeric(78, 0) not null default 0 check (waiting >= 0),
  -- Forwarded before the deposits that it came from were found again: they wait no more.
  ahead numeric(78, 0) not null default 0 check (ahead >= 0),
  last_error text,
  failures integer not null default 0,
  next_run_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null default now()
);
create unique index forward_rules_one on forward_rules (wallet_id) where state in ('PENDING', 'ACTIVE', 'PAUSED');
create index forward_rules_list on forward_rules (sub_account_id, created_at desc, id desc);
create index forward_rules_due on forward_rules (next_run_at) where next_run_at is not null;

-- Each crediting of a deposit counts once for a rule; a reorganisation takes it back, and the next
-- crediting counts again.
create table forward_deposits (
  rule_id uuid not null references forward_rules,
  transaction_id uuid not null references transactions,
  generation integer not null,
  amount numeric(78, 0) not null,
  taken_back boolean not null default false,
  primary key (rule_id, transaction_id, generation)
);
create index forward_deposits_transaction on forward_deposits (transaction_id);

create table forwards (
  transaction_id uuid primary key references transactions,
  rule_id uuid not null references forward_rules,
  -- What it takes of the waiting amount: the payment, and its network fee where the wallet pays
  -- that in the same coin.
  amount numeric(78, 0) not null check (amount > 0),
  -- What it counts against its rule's daily cap beside its amount: room for its network fee, where
  -- that is the same coin and a gas tank pays it. The signer nodes count the fee itself.
  fee_room numeric(78, 0) not null default 0,
  created_at timestamptz not null,
  returned boolean not null default false
);
create index forwards_rule on forwards (rule_id, created_at desc);

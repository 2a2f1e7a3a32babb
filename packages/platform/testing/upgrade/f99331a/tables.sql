create table if not exists migrations (name text primary key, applied_at timestamptz not null default now());
-- Whose installation it is and who calls it. Amounts are numeric(78,0) in the smallest unit, here and in all further files.

-- The network that this database belongs to, written at its first start: coins of local chains are not money.
create table installation (
  one boolean primary key default true check (one),
  network text not null check (network in ('local', 'mainnet')),
  bound_at timestamptz not null default now()
);

create table workspaces (
  id uuid primary key default gen_random_uuid(),
  name text not null unique,
  created_at timestamptz not null default now()
);

-- The public half of a workspace key with the certificates of all three signer nodes.
create table workspace_keys (
  workspace_id uuid not null references workspaces,
  curve text not null check (curve in ('secp256k1', 'ed25519')),
  key_id text not null unique,
  public_key bytea not null,
  chain_code bytea not null,
  epoch integer not null,
  certificates jsonb not null,
  created_at timestamptz not null default now(),
  primary key (workspace_id, curve)
);

create table sub_accounts (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  name text not null,
  -- First element of every derivation path; 0 is the workspace's gas tanks.
  path_index integer not null check (path_index >= 1),
  created_at timestamptz not null default now(),
  unique (workspace_id, name),
  unique (workspace_id, path_index)
);

create table api_users (
  api_key uuid primary key,
  sub_account_id uuid not null references sub_accounts,
  role text not null check (role in ('full', 'read-only')),
  public_key_pem text not null,
  rate_limit integer check (rate_limit > 0),
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);

create table request_nonces (
  api_key uuid not null,
  nonce text not null,
  expires_at timestamptz not null,
  primary key (api_key, nonce)
);
create index request_nonces_expiry on request_nonces (expires_at);

create table rate_windows (
  subject text not null,
  window_start timestamptz not null,
  requests integer not null,
  primary key (subject, window_start)
);
create index rate_windows_start on rate_windows (window_start);

create table events (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null default now()
);
-- Wallets and the addresses whose keys are ours.

create table wallets (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  asset text not null,
  network text not null,
  status text not null default 'active' check (status in ('active', 'inactive')),
  created_at timestamptz not null default now(),
  unique (sub_account_id, asset)
);

-- What the operator made of a wallet, and when. Rows are only ever added: functions/only_added.sql.
create table wallet_status_changes (
  id bigint generated always as identity primary key,
  wallet_id uuid not null references wallets,
  status text not null check (status in ('active', 'inactive')),
  reason text,
  changed_at timestamptz not null
);
create index wallet_status_changes_wallet on wallet_status_changes (wallet_id, id);

-- Every address whose key is ours, once per network.
create table chain_addresses (
  network text not null,
  address text not null,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  path_index integer not null,
  kind text not null check (kind in ('omnibus', 'deposit', 'change', 'tank')),
  created_at timestamptz not null default now(),
  primary key (network, address)
);
create unique index chain_addresses_path on chain_addresses (network, workspace_id, sub_account_id, path_index) nulls not distinct;

-- Addresses as listed: an omnibus address of an account-based chain serves several wallets, and on networks with tags
-- (destination tags, memos) one address serves a sub-account, with a tag for each deposit address.
create table wallet_addresses (
  id uuid primary key default gen_random_uuid(),
  wallet_id uuid not null references wallets,
  network text not null,
  address text not null,
  address_tag text,
  label text,
  -- A wallet's omnibus address is listed from the start; the first POST /address hands it out.
  handed_out boolean not null default true,
  created_at timestamptz not null default now(),
  foreign key (network, address) references chain_addresses (network, address)
);
create unique index wallet_addresses_place on wallet_addresses (wallet_id, address, address_tag) nulls not distinct;
create unique index wallet_addresses_tag on wallet_addresses (network, address, address_tag) where address_tag is not null;
-- Double entry. Every entry sums to zero per asset, checked as it is posted; an entry is posted once per (kind, reference).

-- Of a wallet: available, reserved, unswept (by address); frozen: deposits that are held, on the chain and ours, and
-- nobody's to spend; staked_* by the address that has the resource, staked_*_reserved what an unstake under way has
-- taken of it, cooling what is unstaked and not yet released: all of these stand on the chain in the name of the
-- wallet's own account. Of a workspace: tank, tank_reserved, float and float_reserved (by address), suspense (by
-- address), prepaid, prepaid_reserved, fees. chain: the outside world, the negative of all we hold.
create table ledger_accounts (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  wallet_id uuid references wallets,
  asset text not null,
  kind text not null check (kind in (
    'available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense',
    'prepaid', 'prepaid_reserved', 'fees', 'chain',
    'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling')),
  address text,
  balance numeric(78, 0) not null default 0,
  -- Only a deposit that a reorganisation takes back may leave an account below zero.
  overdrawn boolean not null default false,
  constraint ledger_not_negative check (balance >= 0 or overdrawn or kind in ('chain', 'fees'))
);
create unique index ledger_accounts_key on ledger_accounts (workspace_id, wallet_id, asset, kind, address) nulls not distinct;
create index ledger_accounts_address on ledger_accounts (address) where address is not null;

create table ledger_entries (
  id bigint generated always as identity primary key,
  kind text not null,
  reference text not null,
  created_at timestamptz not null default now(),
  unique (kind, reference)
);

create table ledger_postings (
  entry_id bigint not null references ledger_entries,
  account_id bigint not null references ledger_accounts,
  amount numeric(78, 0) not null,
  primary key (entry_id, account_id)
);
create index ledger_postings_account on ledger_postings (account_id);
-- Transfers, deposits, sweeps, fuel: one table for what a user lists, one for what goes on a chain.

create table transactions (
  id uuid primary key,
  kind text not null check (kind in (
    'WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN', 'STAKE', 'UNSTAKE', 'RELEASE', 'LEND', 'LEND_BACK')),
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  wallet_id uuid references wallets,
  parent_id uuid references transactions,
  asset text not null,
  network text not null,
  amount numeric(78, 0) not null check (amount >= 0),
  fee numeric(78, 0) not null default 0,
  fee_asset text not null,
  -- Both in millionths of a USD; null: nothing is charged for it.
  amount_usd numeric(78, 0) check (amount_usd >= 0),
  platform_fee numeric(78, 0) check (platform_fee >= 0),
  source_type text not null,
  source_id text,
  destination_type text not null,
  destination_id text,
  address_tag text,
  memo text,
  sequence_id text,
  state text not null,
  status text not null check (status in ('pending', 'confirmed', 'failed')),
  failure_reason text,
  -- Why the last attempt made no progress; never shown as a failure.
  last_error text,
  hash text,
  confirmations integer not null default 0,
  -- The caller's signed request, raw: {api_key, token, method, uri, body}; and the nodes' receipts.
  request jsonb,
  receipts jsonb not null default '[]',
  -- The nodes' signed voids of a transaction that failed before it was paid: shown to its caller, who verifies them.
  voids jsonb not null default '[]',
  -- What the worker decided and must not decide again differently: fee plan, reservations.
  plan jsonb not null default '{}',
  fee_rate text,
  fee_level text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  confirmed_at timestamptz,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  attempts integer not null default 0
);
create index transactions_work on transactions (next_run_at) where next_run_at is not null;
create index transactions_list on transactions (sub_account_id, created_at desc, id desc);
create index transactions_hash on transactions (hash) where hash is not null;
create index transactions_parent on transactions (parent_id) where parent_id is not null;
create index transactions_network_state on transactions (network, state) where status = 'pending';
-- GET /dac/v1/transactions?sequence_id=
create index transactions_sequence on transactions (sub_account_id, sequence_id) where sequence_id is not null;
-- At most one sweep of an address and asset is under way. Adopted ones are booked side by side; a new one waits for all.
create unique index transactions_sweep on transactions (network, source_id, asset)
  where kind = 'SWEEP' and status = 'pending' and not plan ? 'adopted';
-- A sweep of one address and asset happens once at a height of its chain; what failed moved nothing.
create unique index transactions_sweep_height on transactions (network, source_id, asset, (plan->>'height'))
  where kind = 'SWEEP' and status <> 'failed';
-- A second unstake counts those of its account that are under way.
create index transactions_staking on transactions (wallet_id) where kind in ('STAKE', 'UNSTAKE', 'RELEASE') and status = 'pending';

create table idempotency (
  wallet_id uuid not null references wallets,
  sequence_id text not null,
  transaction_id uuid not null,
  payload_hash text not null,
  response text not null,
  created_at timestamptz not null default now(),
  primary key (wallet_id, sequence_id)
);

-- A signed transaction that waits can be replaced where the chain allows it: by a dearer one, or by one that pays nobody.
create table replacements (
  id uuid primary key,
  transaction_id uuid not null references transactions,
  -- AUTO: by the platform itself, within what the caller's own request allows.
  kind text not null check (kind in ('SPEED_UP', 'CANCEL', 'AUTO')),
  state text not null default 'PENDING' check (state in ('PENDING', 'FUELING', 'DONE', 'REFUSED')),
  -- The caller's signed request, raw, as in transactions; and the nodes' receipts.
  request jsonb,
  receipts jsonb not null default '[]',
  fee_rate text,
  fee_level text,
  plan jsonb not null default '{}',
  reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index replacements_transaction on replacements (transaction_id, created_at);
create unique index replacements_open on replacements (transaction_id) where state in ('PENDING', 'FUELING');

-- Signed bytes are committed here before any broadcast.
create table chain_transactions (
  id uuid primary key,
  transaction_id uuid not null references transactions,
  network text not null,
  attempt integer not null default 1,
  -- EXPIRED: dead on its chain; it keeps its sequence until another attempt takes it over or the transfer fails.
  -- REPLACED: another attempt of the same transaction is final, so that this one can never be included.
  state text not null check (state in ('BUILT', 'SIGNED', 'INCLUDED', 'CONFIRMED', 'EXPIRED', 'REPLACED', 'VOID')),
  -- First attempt of the same transaction, whose nonce or inputs this one takes over.
  replaces uuid references chain_transactions,
  replacement_id uuid references replacements,
  -- Which of its calls a chain transaction of a stake is, and the unstaked TRX that came back with it.
  step text check (step in ('freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw')),
  withdrawn numeric(78, 0),
  account text,
  nonce bigint,
  unsigned jsonb not null,
  signed text,
  hash text,
  fee_max numeric(78, 0) not null,
  fee numeric(78, 0),
  succeeded boolean,
  -- Last ledger or second in which a transaction can be included; null: it never expires.
  valid_until bigint,
  block_height bigint,
  block_hash text,
  -- When it was first shown to a signer node. Until then nothing can be signed of it, and it may take another place in
  -- its account's order.
  shown_at timestamptz,
  broadcast_at timestamptz,
  created_at timestamptz not null default now(),
  unique (transaction_id, attempt)
);
create unique index chain_transactions_nonce on chain_transactions (network, account, nonce)
  where state <> 'VOID' and nonce is not null and replaces is null;
create unique index chain_transactions_hash on chain_transactions (network, hash) where hash is not null;
create index chain_transactions_block on chain_transactions (network, block_height) where block_height is not null;
-- Every transaction that a node signs was committed here before: one that is not found is a lost commit.
create index chain_transactions_bytes on chain_transactions using hash ((unsigned->>'bytes'));

-- Each account that signs; its row is locked while a nonce is taken.
create table signing_accounts (
  network text not null,
  address text not null,
  next_nonce bigint not null default 0,
  primary key (network, address)
);
-- The scanner's position on each chain, and what it found there.

-- One row per network: the scanner's position and lease.
create table network_scans (
  network text primary key,
  height bigint,
  tip_height bigint not null default 0,
  final_height bigint not null default 0,
  -- From where a network is scanned again while addresses are being found; null: no search is under way.
  rescan_from bigint,
  genesis text,
  lease_until timestamptz,
  lease_token uuid,
  updated_at timestamptz not null default now()
);

create table blocks (
  network text not null,
  height bigint not null,
  hash text not null,
  parent text not null,
  primary key (network, height)
);

-- Where a deposit stands on its chain. A reorganisation marks it, it is never deleted.
create table deposits (
  transaction_id uuid primary key references transactions,
  network text not null,
  txid text not null,
  -- Output index (UTXO), log index (tokens), -1 for the native value of an account-based transaction.
  position integer not null,
  address text not null,
  asset text not null,
  amount numeric(78, 0) not null,
  tag text,
  -- Number among the equal payments of one transaction.
  occurrence integer not null,
  sender text,
  -- All addresses it was paid from; null until they were asked for, which is before anything is credited.
  senders jsonb,
  -- False: part of what paid has no address. Null, as `senders`: not known yet.
  senders_complete boolean,
  -- What a block pays its miner can be spent only many blocks later, and is credited then.
  coinbase boolean not null default false,
  block_height bigint,
  block_hash text
);
-- What a deposit is: what a transaction pays to an address, and not where that stands in a block, which a
-- reorganisation changes.
create unique index deposits_identity on deposits (network, txid, address, asset, amount, tag, occurrence) nulls not distinct;
create index deposits_txid on deposits (network, txid);
create index deposits_block on deposits (network, block_height);

create table utxos (
  network text not null,
  txid text not null,
  vout integer not null,
  address text not null,
  wallet_id uuid not null references wallets,
  value numeric(78, 0) not null,
  -- What rides on a coin of Cardano beside its lovelace: native tokens and a reference script. Null: nothing.
  riders jsonb,
  path_index integer not null,
  origin text not null check (origin in ('deposit', 'change')),
  -- Deposits may be spent once credited; change of our own at once.
  spendable boolean not null default false,
  -- Change of one of several attempts: nobody knows yet which of them will exist.
  contested boolean not null default false,
  block_height bigint,
  spent_by uuid references chain_transactions,
  created_at timestamptz not null default now(),
  primary key (network, txid, vout)
);
create index utxos_wallet on utxos (wallet_id) where spent_by is null;

-- What the operator lets deposit addresses keep. Scope: '*', a network's code or an asset. Null: the next wider scope
-- decides.
create table sweep_settings (
  scope text primary key,
  cost_multiple numeric check (cost_multiple >= 0),
  min_amount numeric(78, 0) check (min_amount >= 0),
  updated_at timestamptz not null default now()
);
-- Each workspace's reserve of a network's native coin, which pays network fees.

create table gas_tanks (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  network text not null,
  address text not null,
  threshold numeric(78, 0) not null,
  -- What it may pay for one transaction, and up to which gas price; null: the network's own cap alone.
  fee_cap numeric(78, 0) check (fee_cap > 0),
  max_gas_price numeric(78, 0) check (max_gas_price > 0),
  -- The last status that an event told of.
  status text not null default 'ok' check (status in ('ok', 'low', 'empty')),
  -- Local chains only: what a new tank is filled with on its first use.
  first_fill numeric(78, 0) not null default 0,
  first_fill_hash text,
  created_at timestamptz not null default now(),
  unique (workspace_id, network)
);
-- Screening of counterparties: settings and frozen addresses of each sub-account, and what is held by them.

create table aml_settings (
  sub_account_id uuid primary key references sub_accounts,
  provider text not null check (provider in ('CHAINALYSIS', 'ELLIPTIC', 'TRM')),
  -- AES-256-GCM under the installation's secrets key, bound to the sub-account.
  sealed_token bytea not null,
  risk_levels text[] not null,
  screen_deposits boolean not null,
  screen_withdrawals boolean not null,
  updated_at timestamptz not null default now()
);

-- One row per freeze event. `space` is where an address means the same party: `evm` for every EVM chain, else the network.
create table frozen_addresses (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  space text not null,
  address_key text not null,
  address text not null,
  address_tag text,
  asset text not null,
  -- The provider, or OFAC.
  source text not null,
  risk_level text not null,
  transaction_id uuid not null references transactions,
  frozen_at timestamptz not null,
  unfrozen_at timestamptz,
  unfrozen_by uuid references api_users
);
create unique index frozen_addresses_active on frozen_addresses (sub_account_id, space, address_key) where unfrozen_at is null;
-- Screening asks when an address was last frozen, also where it is frozen no more.
create index frozen_addresses_key on frozen_addresses (sub_account_id, space, address_key);

-- What a freeze event holds. Released once, when the address is unfrozen; a transaction goes on when nothing holds it.
create table aml_holds (
  transaction_id uuid not null references transactions,
  freeze_id uuid not null references frozen_addresses,
  held_at timestamptz not null,
  released_at timestamptz,
  primary key (transaction_id, freeze_id)
);
create index aml_holds_freeze on aml_holds (freeze_id) where released_at is null;

-- Every answer of a provider, as evidence. `risk_level` null: the provider knows nothing against the address.
create table aml_screenings (
  id bigint generated always as identity primary key,
  transaction_id uuid not null references transactions,
  provider text not null,
  address_key text not null,
  risk_level text,
  screened_at timestamptz not null
);
create index aml_screenings_transaction on aml_screenings (transaction_id);
-- The prepaid fee account of a workspace: USD with six decimals in the ledger kinds prepaid, prepaid_reserved and fees.
-- Whatever changes it locks its row here first, and only after the rows of wallets, so that nobody waits in a circle.

create table prepaid_accounts (
  workspace_id uuid primary key references workspaces,
  tier text not null default 'STARTER',
  -- UTC day for which the tier was last decided.
  decided_on date not null default (now() at time zone 'utc')::date,
  -- First day of the month for which a subscription was paid, and how much of it.
  paid_month date,
  paid numeric(78, 0) not null default 0 check (paid >= 0),
  -- Balance right after the last top-up: events tell when a fifth and a twentieth of it are left.
  level numeric(78, 0) not null default 0,
  -- What was told since: 0 nothing, 1 a fifth is left, 2 a twentieth, 3 empty.
  told smallint not null default 0 check (told between 0 and 3)
);
create index prepaid_accounts_turn on prepaid_accounts (decided_on);

-- USD value of what was charged for, by UTC day.
create table prepaid_volumes (
  workspace_id uuid not null references workspaces,
  day date not null,
  amount_usd numeric(78, 0) not null,
  primary key (workspace_id, day)
);
-- Tron's Stake 2.0: one row for each unstake that is final, as the chain keeps it.

create table cooldowns (
  transaction_id uuid primary key references transactions,
  -- Null: a gas tank's.
  wallet_id uuid references wallets,
  network text not null,
  -- The account whose stake it was on the chain, and who had its resource.
  account text not null,
  address text not null,
  resource text not null check (resource in ('ENERGY', 'BANDWIDTH')),
  amount numeric(78, 0) not null check (amount > 0),
  -- By the time of the chain's blocks.
  release_at timestamptz not null,
  -- The release under way that the caller has asked for.
  releasing_by uuid references transactions,
  released_by uuid references transactions,
  -- When `staking.releasable` told of it.
  told_at timestamptz
);
create index cooldowns_open on cooldowns (network, account, release_at) where released_by is null;
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

-- Each crediting of a deposit counts once for a rule; a reorganisation takes it back, and the next crediting counts anew.
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
  -- What it takes of the waiting amount: the payment, and its network fee where the wallet pays that in the same coin.
  amount numeric(78, 0) not null check (amount > 0),
  -- What it counts against its rule's daily cap beside its amount: room for its network fee, where that is the same coin
  -- and a gas tank pays it. The signer nodes count the fee itself.
  fee_room numeric(78, 0) not null default 0,
  created_at timestamptz not null,
  returned boolean not null default false
);
create index forwards_rule on forwards (rule_id, created_at desc);
-- What the signer nodes have recorded, compared with what this database knows: after an older backup was restored the
-- nodes know more, and the platform adopts it.

-- How far each node's record was compared. Restored with the database, so that everything since is looked at again.
create table signer_marks (
  node integer primary key,
  generation integer not null,
  height bigint not null,
  hash text not null,
  compared_at timestamptz not null
);

-- Recorded by the nodes, and not adopted: reconciling tries again, and tells of it until it is.
create table unadopted_steps (
  id text primary key,
  recorded jsonb not null,
  reason text not null,
  -- False: nothing was signed as far as anybody knows, so that nothing is missing.
  matters boolean not null,
  noted_at timestamptz not null
);
-- Numbers of an account follow from its chain transactions: nobody has read this since.
alter table signing_accounts drop column if exists next_nonce;
-- The log of events, and what is sent of it to callers' endpoints.

-- `id` is given before the commit, so that whoever follows it misses what commits late. A publisher gives each committed event
-- its place in the log, without gaps, and its object's version: 1, 2, 3 …
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

-- What signs deliveries for those who check `x-signature`: one RSA pair, made at the first start. The private half is sealed.
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
  -- After a rotation the secret of before signs as well, until then.
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
-- Invoices: what a payer is asked for, at rates that stay, and which deposits pay them.

-- What a workspace sets for all its invoices.
create table if not exists invoice_settings (
  workspace_id uuid primary key references workspaces,
  -- What payers read as the merchant's name; null: the workspace's.
  display_name text,
  -- Origins of pages that may show the checkout in a frame.
  allowed_origins jsonb not null default '[]',
  -- [{from_usd, confirmations}]: decimal strings and whole numbers, from_usd rising.
  confirmations jsonb not null default '[]',
  -- Millionths of the amount that may be missing; and seconds of an invoice's life. Null: the installation's.
  tolerance integer,
  expires_in_s integer,
  updated_at timestamptz not null
);

create table if not exists invoices (
  -- Random: whoever knows it may see the invoice and pay it.
  id text primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  status text not null default 'Pending' check (status in ('Pending', 'Processing', 'Paid', 'Expired', 'Invalid')),
  exception text check (exception in ('late', 'partial', 'over')),
  fiat text,
  -- Millionths.
  fiat_amount numeric(78, 0) check (fiat_amount > 0),
  memo text,
  order_id text,
  payer jsonb,
  webhook_url text,
  success_url text,
  failed_url text,
  -- Millionths of the amount that may be missing.
  tolerance integer not null check (tolerance between 0 and 999999),
  -- The offer that was chosen last; null: the payer has not chosen.
  selected text,
  cancelled_at timestamptz,
  -- The merchant's own word, which goes before what was paid.
  marked text check (marked in ('settled', 'invalid')),
  marked_reason text,
  marked_at timestamptz,
  -- Whose last movement was evaluated; its events carry it.
  version integer not null default 1,
  -- When it is to be looked at; null: when something moves.
  due_at timestamptz,
  -- It is also to be looked at when the scan of a network has come to a height: a payment is deep enough then.
  due_network text,
  due_height bigint,
  sequence_id text,
  payload_hash text,
  response text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists invoices_sequence on invoices (sub_account_id, sequence_id) where sequence_id is not null;
create index if not exists invoices_list on invoices (sub_account_id, created_at desc, id desc);
create index if not exists invoices_order on invoices (sub_account_id, order_id) where order_id is not null;
create index if not exists invoices_due on invoices (due_at) where due_at is not null;
create index if not exists invoices_deep on invoices (due_network, due_height) where due_height is not null;

-- What an invoice may be paid in. Amount and rate never change.
create table if not exists invoice_offers (
  invoice_id text not null references invoices,
  asset text not null,
  network text not null,
  -- Order in which they are shown.
  position integer not null,
  -- Smallest unit.
  amount numeric(78, 0) not null check (amount > 0),
  -- USD of one coin, with 12 decimals; null: the amount itself was asked for, and no price was known.
  rate numeric(78, 0),
  rate_at timestamptz,
  -- Blocks that a payment needs beside being credited.
  confirmations integer not null,
  -- Null until it is chosen; from then on it is this invoice's for ever.
  wallet_id uuid references wallets,
  address text,
  address_tag text,
  -- Where the address is below the workspace's key.
  path integer[],
  chosen_at timestamptz,
  primary key (invoice_id, asset)
);
create unique index if not exists invoice_offers_place on invoice_offers (network, address, coalesce(address_tag, ''))
  where address is not null;
-- The last time at which the whole chain was known up to its tip: until then, whatever is found later was not there.
alter table network_scans add column if not exists known_at timestamptz;
-- The same, as it was when a deposit was found: an outage of ours makes no payer late. Null: found before there were invoices.
alter table deposits add column if not exists known_at timestamptz;
create index if not exists deposits_place on deposits (network, address, coalesce(tag, ''));

-- Deposits at an invoice's addresses, as they were when it was last looked at.
create table if not exists invoice_payments (
  transaction_id uuid primary key references transactions,
  invoice_id text not null references invoices,
  asset text not null,
  amount numeric(78, 0) not null,
  status text not null check (status in ('seen', 'detected', 'confirmed', 'held', 'reverted')),
  -- False: in an asset that was not offered.
  counts boolean not null,
  seen_at timestamptz not null
);
create index if not exists invoice_payments_invoice on invoice_payments (invoice_id);

-- What waits, or waited, in a network's pool of transactions for an address of an invoice: one row a transaction, the sum of
-- what it pays there. It stays when the block has come: it says that the payment was made before.
create table if not exists invoice_mempool (
  network text not null,
  txid text not null,
  invoice_id text not null references invoices,
  asset text not null,
  amount numeric(78, 0) not null check (amount > 0),
  seen_at timestamptz not null,
  -- When the pool was last known to the end without it.
  known_at timestamptz not null,
  -- False: a block holds it, or it was replaced or dropped.
  waiting boolean not null default true,
  -- As it was when the invoice was last looked at; null: a deposit stands for it, or it was not looked at yet.
  noted text check (noted in ('seen', 'dropped')),
  primary key (network, txid, invoice_id)
);
create index if not exists invoice_mempool_invoice on invoice_mempool (invoice_id);
create index if not exists invoice_mempool_waiting on invoice_mempool (network) where waiting;
-- Whose payments are looked for before a block holds them.
create index if not exists invoices_open on invoices (id) where status in ('Pending', 'Processing');

-- Transfers by which a merchant gave back what was paid.
create table if not exists invoice_refunds (
  transaction_id uuid primary key references transactions,
  invoice_id text not null references invoices
);
create index if not exists invoice_refunds_invoice on invoice_refunds (invoice_id);

-- By which a server is told of the invoices that name an address there: made by itself, one for each origin.
alter table webhooks add column if not exists invoice_origin text;
create unique index if not exists webhooks_invoice_origin on webhooks (sub_account_id, invoice_origin) where invoice_origin is not null;
-- Where it goes, if not where its webhook says.
alter table webhook_deliveries add column if not exists url text;
-- Accounts at exchanges, and orders there. Amounts, prices and fees at venues are integers of 18 decimals, of whatever coin.

-- A venue owes what a claim says: no coins are behind it. venue: by the account at the exchange (`address`); venue_outside: whoever
-- traded with it, paid into it or was paid; venue_fees: what the venue took. Their assets are named venue:COIN, since the same coin on
-- a chain has other decimals.
alter table ledger_accounts drop constraint if exists ledger_accounts_kind_check;
alter table ledger_accounts add constraint ledger_accounts_kind_check check (kind in (
  'available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense',
  'prepaid', 'prepaid_reserved', 'fees', 'chain',
  'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling',
  'venue', 'venue_outside', 'venue_fees'));
-- A claim below zero is a difference from the venue, which is told; nothing is refused for it that the venue has done already.
alter table ledger_accounts drop constraint if exists ledger_not_negative;
alter table ledger_accounts add constraint ledger_not_negative check (
  balance >= 0 or overdrawn or kind in ('chain', 'fees', 'venue', 'venue_outside', 'venue_fees'));

create table if not exists exchange_accounts (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  -- ccxt's name.
  exchange text not null,
  label text not null,
  -- failing: the venue refused the key when it was last asked.
  status text not null default 'active' check (status in ('active', 'failing', 'deleted')),
  reason text,
  -- Null once it is deleted.
  sealed_credentials bytea,
  -- Grows with each new key.
  credentials_version integer not null default 1,
  -- By which a key is known again, and its last characters.
  key_hash text not null,
  key_hint text not null,
  allow_withdrawal boolean not null,
  -- {trade, withdraw, ip_restricted}: null where the venue does not tell.
  permissions jsonb not null,
  checked_at timestamptz not null,
  -- When the venue's balances were last read; and what the last comparison with the books found.
  balances_at timestamptz not null,
  difference jsonb not null default '[]',
  -- What one comparison found and the next must find again.
  suspected jsonb not null default '[]',
  reconcile_at timestamptz,
  lease_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists exchange_accounts_key on exchange_accounts (workspace_id, exchange, key_hash) where status <> 'deleted';
create index if not exists exchange_accounts_list on exchange_accounts (sub_account_id, created_at desc, id desc);
create index if not exists exchange_accounts_due on exchange_accounts (reconcile_at) where reconcile_at is not null;

create table if not exists exchange_balances (
  account_id uuid not null references exchange_accounts,
  coin text not null,
  available numeric(78, 0) not null,
  total numeric(78, 0) not null,
  primary key (account_id, coin)
);

-- The last number of each key whose requests carry one that must rise, and whose turn it is.
create table if not exists exchange_nonces (
  key_hash text primary key,
  last bigint not null,
  holder text,
  held_until timestamptz
);

create table if not exists orders (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  market text not null,
  base text not null,
  quote text not null,
  side text not null check (side in ('buy', 'sell')),
  type text not null check (type in ('market', 'limit')),
  -- In the base coin, on the market's grid; quote_amount: what was asked for in its place.
  amount numeric(78, 0) not null check (amount > 0),
  quote_amount numeric(78, 0),
  -- The limit with which it is sent; of a market order its protection.
  price numeric(78, 0) not null check (price > 0),
  time_in_force text not null check (time_in_force in ('GTC', 'IOC', 'FOK')),
  post_only boolean not null,
  max_slippage_bps integer,
  -- By which the venue knows it, made of its id.
  client_id text not null unique,
  venue_id text,
  -- NEW, SENDING (written before the call), ASKING (the answer was lost), WORKING (the venue has it), ENDED.
  state text not null default 'NEW' check (state in ('NEW', 'SENDING', 'ASKING', 'WORKING', 'ENDED')),
  status text not null default 'open' check (status in ('open', 'partially_filled', 'filled', 'cancelled', 'rejected', 'unknown')),
  reason text,
  last_error text,
  filled numeric(78, 0) not null default 0,
  cost numeric(78, 0) not null default 0,
  -- What the venue took, by coin.
  fees jsonb not null default '{}',
  -- Millionths of a USD: reserved, charged of it, and the value from which it follows.
  platform_fee numeric(78, 0) not null,
  fee_charged numeric(78, 0),
  amount_usd numeric(78, 0),
  cancel_requested_at timestamptz,
  sent_at timestamptz,
  -- It was seen to have ended with so much filled: that must be seen twice.
  final_seen numeric(78, 0),
  alerted_at timestamptz,
  sequence_id text,
  payload_hash text,
  response text not null,
  version integer not null default 1,
  attempts integer not null default 0,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists orders_sequence on orders (sub_account_id, sequence_id) where sequence_id is not null;
create index if not exists orders_list on orders (sub_account_id, created_at desc, id desc);
create index if not exists orders_account on orders (account_id) where state <> 'ENDED';
create index if not exists orders_due on orders (next_run_at) where next_run_at is not null;

-- A venue may tell a fill twice: it is one row, and one entry of the ledger.
create table if not exists order_fills (
  account_id uuid not null references exchange_accounts,
  market text not null,
  trade_id text not null,
  order_id uuid not null references orders,
  price numeric(78, 0) not null,
  amount numeric(78, 0) not null,
  cost numeric(78, 0) not null,
  fee numeric(78, 0) not null,
  fee_coin text not null,
  maker boolean,
  at timestamptz not null,
  created_at timestamptz not null,
  primary key (account_id, market, trade_id)
);
create index if not exists order_fills_order on order_fills (order_id, at);
-- Coins on their way between wallets and exchanges.

-- The address at an exchange that coins of an asset last went to: another one is sent to only where the caller names it.
create table if not exists exchange_addresses (
  account_id uuid not null references exchange_accounts,
  asset text not null,
  address text not null,
  address_tag text,
  updated_at timestamptz not null,
  primary key (account_id, asset)
);

create table if not exists exchange_transfers (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  direction text not null check (direction in ('to_exchange', 'from_exchange')),
  asset text not null,
  network text not null,
  -- The exchange's name of the coin.
  coin text not null,
  -- What was asked for, in units of 18 decimals; and what the exchange credited, or took for it.
  amount numeric(78, 0) not null check (amount > 0),
  credited numeric(78, 0),
  fee numeric(78, 0),
  -- Where the coins go: at the exchange, or the wallet's own.
  address text not null,
  address_tag text,
  -- Of a withdrawal: the name under which the exchange knows the address, where it wants one; ours for the request; its own.
  venue_key text,
  client_id text unique,
  venue_id text,
  -- The transfer that brings them, or the deposit that they arrive as.
  transaction_id uuid references transactions,
  hash text,
  -- NEW, SENDING (written before the call), ASKING (the answer was lost), WITHDRAWING (the exchange has it), MOVING (on the chain,
  -- or about to be), DONE, FAILED.
  state text not null check (state in ('NEW', 'SENDING', 'ASKING', 'WITHDRAWING', 'MOVING', 'DONE', 'FAILED')),
  status text not null default 'pending' check (status in ('pending', 'completed', 'failed', 'unknown')),
  reason text,
  last_error text,
  sent_at timestamptz,
  -- It takes longer than it should, and somebody was told.
  overdue_at timestamptz,
  sequence_id text,
  payload_hash text,
  response text not null,
  version integer not null default 1,
  attempts integer not null default 0,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists exchange_transfers_sequence on exchange_transfers (sub_account_id, sequence_id)
  where sequence_id is not null;
create unique index if not exists exchange_transfers_transaction on exchange_transfers (transaction_id)
  where transaction_id is not null;
-- One withdrawal of the exchange's is one of ours.
create unique index if not exists exchange_transfers_venue on exchange_transfers (account_id, direction, venue_id)
  where venue_id is not null;
create index if not exists exchange_transfers_list on exchange_transfers (sub_account_id, created_at desc, id desc);
create index if not exists exchange_transfers_account on exchange_transfers (account_id) where state not in ('DONE', 'FAILED');
create index if not exists exchange_transfers_due on exchange_transfers (next_run_at) where next_run_at is not null;
-- What a conversion would be, and the order that it became.
create table if not exists conversions (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  market text not null,
  side text not null check (side in ('buy', 'sell')),
  from_coin text not null,
  to_coin text not null,
  -- Units of 18 decimals: what was asked to be given; what the order is of and its limit; what comes of it, after the exchange's fee.
  given numeric(78, 0) not null check (given > 0),
  amount numeric(78, 0) not null check (amount > 0),
  price numeric(78, 0) not null check (price > 0),
  receive numeric(78, 0) not null,
  -- What other accounts would have given, or why they could not.
  others jsonb not null default '[]',
  expires_at timestamptz not null,
  -- Null until it is done.
  order_id uuid unique references orders,
  sequence_id text,
  payload_hash text,
  created_at timestamptz not null
);
create unique index if not exists conversions_sequence on conversions (sub_account_id, sequence_id) where sequence_id is not null;
create index if not exists conversions_expired on conversions (expires_at) where order_id is null;
-- Who uses the control panel, and what it did: people, how they sign in, sessions, roles, invitations, the audit log.

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

-- What was begun and waits for a second step: a sign-in for its code, a passkey for its answer. Tokens as SHA-256.
create table if not exists sign_in_steps (
  token_hash bytea primary key,
  kind text not null,
  person_id uuid references people,
  data jsonb not null default '{}',
  tries integer not null default 0,
  expires_at timestamptz not null
);
create index if not exists sign_in_steps_expiry on sign_in_steps (expires_at);

-- Failed sign-ins in a row, by an e-mail address (whether or not somebody has it) and by a client's address.
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

-- A link that is used once. Without a workspace: the very first owner's, who names it. With a person: that person's new beginning,
-- where every factor was lost.
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

-- Each line's hash is SHA-256 over its canonical JSON, the hash before it included. Rows are only ever added:
-- functions/only_added.sql.
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

-- API users that the panel asked for. They become such by the operator's hand, at the nodes and here.
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

-- Every state that a transaction was in: written by a trigger (functions/note_state.sql), so that no step forgets it.
create table if not exists transaction_states (
  id bigint generated always as identity primary key,
  -- No foreign key: rows of transactions are never deleted, and this is written on every step of each.
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
-- How many rows the long lists hold, by what they may be asked for: GET answers `total` and goes to a deep page without reading the
-- rows before it. Triggers (functions/count_*.sql) add what changes, each a row of its own, so that no two writers wait for each
-- other; a worker folds them (functions/fold_list_counts.sql). What is true is the sum of both.

-- `owner`: whose list. `level`: 0 all of it, 1 by day, 2 by hour (UTC) of creation. `dims`: the columns that it can be asked by.
create table if not exists list_counts (
  list text not null,
  owner uuid not null,
  level smallint not null check (level between 0 and 2),
  bucket timestamptz not null,
  dims jsonb not null,
  n bigint not null,
  primary key (list, owner, level, bucket, dims)
);
create table if not exists list_deltas (
  id bigint generated always as identity primary key,
  list text not null,
  owner uuid not null,
  -- The hour of creation.
  bucket timestamptz not null,
  dims jsonb not null,
  n bigint not null
);
create index if not exists list_deltas_list on list_deltas (list, owner);

-- Nothing is written between what is counted here and the triggers, which come in the same transaction.
lock table transactions, invoices, orders, exchange_transfers, webhook_deliveries in share row exclusive mode;
insert into list_deltas (list, owner, bucket, dims, n)
  select 'transactions', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('kind', kind, 'asset', asset,
    'status', status, 'source_type', source_type, 'destination_type', destination_type), count(*)
  from transactions where sub_account_id is not null group by 2, 3, 4
  union all
  select 'invoices', sub_account_id, date_trunc('hour', created_at, 'UTC'),
    jsonb_build_object('status', status, 'exception', exception), count(*)
  from invoices group by 2, 3, 4
  union all
  select 'orders', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('account_id', account_id::text,
    'exchange', exchange, 'market', market, 'side', side, 'type', type, 'status', status), count(*)
  from orders group by 2, 3, 4
  union all
  select 'exchange_transfers', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('account_id', account_id::text,
    'asset', asset, 'direction', direction, 'status', status), count(*)
  from exchange_transfers group by 2, 3, 4
  union all
  select 'webhook_deliveries', webhook_id, date_trunc('hour', created_at, 'UTC'),
    jsonb_build_object('status', status, 'type', type), count(*)
  from webhook_deliveries group by 2, 3, 4;

-- A wallet's history, and what else one transaction after the other would be looked through for.
create index if not exists transactions_wallet_list on transactions (sub_account_id, asset, created_at desc, id desc);
create index if not exists transactions_source on transactions (sub_account_id, lower(source_id), created_at desc, id desc)
  where source_id is not null;
create index if not exists transactions_destination on transactions (sub_account_id, lower(destination_id), created_at desc, id desc)
  where destination_id is not null;
create index if not exists transactions_memo on transactions (sub_account_id, memo, created_at desc, id desc) where memo is not null;
-- What is seldom among the others: hours of them would have to be read to fill a page.
create index if not exists transactions_failed on transactions (sub_account_id, created_at desc, id desc) where status = 'failed';
create index if not exists transactions_pending on transactions (sub_account_id, created_at desc, id desc) where status = 'pending';
create index if not exists transactions_seldom on transactions (sub_account_id, kind, created_at desc, id desc)
  where kind in ('STAKE', 'UNSTAKE', 'RELEASE', 'DRAIN', 'LEND', 'LEND_BACK');

-- Coins that no block holds yet, which the scan of a block looks for.
create index if not exists utxos_unplaced on utxos (network, txid) where block_height is null;

-- The order of an account's transactions, replacements too, and those of it that nobody has signed yet.
create index if not exists chain_transactions_account on chain_transactions (network, account, nonce) where account is not null;
create index if not exists chain_transactions_unsigned on chain_transactions (network, account, nonce) where state = 'BUILT';
-- Rules whose time is over, or whose making was never finished.
create index if not exists forward_rules_expiring on forward_rules (expires_at) where state in ('ACTIVE', 'PAUSED');
create index if not exists forward_rules_unfinished on forward_rules (created_at) where state = 'PENDING';
-- Whether a tank was ever paid into, which is asked of all tanks every second.
create index if not exists transactions_tank_deposits on transactions (workspace_id, network) where kind = 'TANK_DEPOSIT';
-- A new wallet looks for what came in before it: found without a walk over all that its sub-account ever received.
create index if not exists transactions_waiting on transactions (sub_account_id, asset) where kind = 'DEPOSIT' and wallet_id is null;
-- The transfers that one fuel pays for, and what the nodes are told that each may cost: as many as come while it waits.
create table if not exists fuel_parts (
  fuel_id uuid not null references transactions,
  transaction_id uuid not null references transactions,
  gas numeric(78, 0) not null,
  max_fee_per_gas numeric(78, 0) not null,
  l1_fee numeric(78, 0) not null,
  -- What the fuel brings for it, in the smallest native unit.
  amount numeric(78, 0) not null check (amount > 0),
  primary key (fuel_id, transaction_id)
);
create index if not exists fuel_parts_transaction on fuel_parts (transaction_id);
-- Fuel of an address that waits or is under way.
create index if not exists transactions_fuel on transactions (network, destination_id) where kind = 'FUEL' and status = 'pending';
-- What waits in a wallet for coins: the next of them is woken when change comes.
create index if not exists transactions_wallet_queue on transactions (wallet_id, created_at, id)
  where state = 'QUEUED' and status = 'pending';
alter table transactions drop constraint if exists transactions_form;
drop function if exists transactions_form_holds;
create function transactions_form_holds(kind text, state text, plan jsonb)
  returns boolean language plpgsql immutable parallel safe as $$ begin return (kind = 'WITHDRAWAL' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'CREATED', 'SCREENING', 'AML_HELD', 'FUELING', 'REPLACING', 'VOIDING', 'CANCELLED') and plan - array['gas', 'max_fee_per_gas', 'max_priority_fee_per_gas', 'l1_fee', 'legacy', 'need', 'fee_limit', 'energy_counted', 'bandwidth_counted', 'energy_spared', 'bandwidth_spared', 'fuel_id', 'float_taken', 'loan_id', 'fee_wallet', 'fee_held', 'earlier', 'adopted', 'screening_since', 'screening_alerted', 'fee_reserve', 'rule_id', 'cancel', 'reason', 'resume', 'refunded'] = '{}'::jsonb)
 or (kind = 'SWEEP' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'FUELING') and plan - array['gas', 'max_fee_per_gas', 'max_priority_fee_per_gas', 'l1_fee', 'legacy', 'need', 'fee_limit', 'energy_counted', 'bandwidth_counted', 'energy_spared', 'bandwidth_spared', 'fuel_id', 'float_taken', 'loan_id', 'fee_wallet', 'fee_held', 'earlier', 'adopted', 'height', 'waits', 'own'] = '{}'::jsonb)
 or (kind = 'FUEL' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'REPLACING') and plan - array['gas', 'max_fee_per_gas', 'max_priority_fee_per_gas', 'l1_fee', 'legacy', 'need', 'earlier', 'adopted', 'fee_limit', 'for_gas', 'for_max_fee_per_gas', 'for_l1_fee', 'replacement', 'alone', 'together', 'settled', 'cancel'] = '{}'::jsonb)
 or (kind = 'DRAIN' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED') and plan - array['gas', 'max_fee_per_gas', 'max_priority_fee_per_gas', 'l1_fee', 'legacy', 'need', 'earlier', 'adopted', 'back_fee', 'fee_limit', 'order', 'reserved_fee'] = '{}'::jsonb)
 or (kind = 'STAKE' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'FUELING', 'VOIDING', 'PARTIAL') and plan - array['fuel_id', 'float_taken', 'loan_id', 'earlier', 'adopted', 'back_fee', 'fee_limit', 'energy_counted', 'bandwidth_counted', 'energy_spared', 'bandwidth_spared', 'need', 'resource', 'step', 'fees_paid', 'delay_days', 'expected_at', 'order', 'reserved_fee', 'adopted_steps', 'reason', 'refunded'] = '{}'::jsonb)
 or (kind = 'UNSTAKE' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'FUELING', 'VOIDING', 'PARTIAL') and plan - array['fuel_id', 'float_taken', 'loan_id', 'earlier', 'adopted', 'back_fee', 'fee_limit', 'energy_counted', 'bandwidth_counted', 'energy_spared', 'bandwidth_spared', 'need', 'resource', 'step', 'fees_paid', 'delay_days', 'expected_at', 'order', 'reserved_fee', 'adopted_steps', 'reason', 'refunded'] = '{}'::jsonb)
 or (kind = 'RELEASE' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED', 'FUELING', 'VOIDING', 'PARTIAL') and plan - array['fuel_id', 'float_taken', 'loan_id', 'earlier', 'adopted', 'back_fee', 'fee_limit', 'energy_counted', 'bandwidth_counted', 'energy_spared', 'bandwidth_spared', 'need', 'resource', 'step', 'fees_paid', 'delay_days', 'expected_at', 'order', 'reserved_fee', 'adopted_steps', 'reason', 'refunded'] = '{}'::jsonb)
 or (kind = 'LEND' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED') and plan - array['earlier', 'adopted', 'fee_limit', 'need', 'resource', 'reserved_fee', 'back_fee', 'settled', 'ended', 'step', 'fees_paid', 'delay_days', 'adopted_steps', 'order'] = '{}'::jsonb)
 or (kind = 'LEND_BACK' and state in ('QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED', 'REVERTED', 'FAILED') and plan - array['earlier', 'adopted', 'fee_limit', 'need', 'resource', 'reserved_fee', 'back_fee', 'settled', 'ended', 'step', 'fees_paid', 'delay_days', 'adopted_steps', 'order'] = '{}'::jsonb)
 or (kind = 'DEPOSIT' and state in ('CONFIRMING', 'SCREENING', 'FROZEN', 'SUSPENSE', 'CREDITED', 'SWEPT', 'REORGED') and plan - array['screening_since', 'screening_alerted', 'generation', 'frozen_wallet', 'unknown_sender', 'senders_released'] = '{}'::jsonb)
 or (kind = 'TANK_DEPOSIT' and state in ('CONFIRMING', 'CREDITED', 'REORGED') and plan - array['generation'] = '{}'::jsonb); end $$;
alter table transactions add constraint transactions_form check (transactions_form_holds(kind, state, plan)) not valid;
comment on constraint transactions_form on transactions is '
  create function transactions_form_holds(kind text, state text, plan jsonb)
  returns boolean language plpgsql immutable parallel safe as $$ begin return (kind = ''WITHDRAWAL'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''CREATED'', ''SCREENING'', ''AML_HELD'', ''FUELING'', ''REPLACING'', ''VOIDING'', ''CANCELLED'') and plan - array[''gas'', ''max_fee_per_gas'', ''max_priority_fee_per_gas'', ''l1_fee'', ''legacy'', ''need'', ''fee_limit'', ''energy_counted'', ''bandwidth_counted'', ''energy_spared'', ''bandwidth_spared'', ''fuel_id'', ''float_taken'', ''loan_id'', ''fee_wallet'', ''fee_held'', ''earlier'', ''adopted'', ''screening_since'', ''screening_alerted'', ''fee_reserve'', ''rule_id'', ''cancel'', ''reason'', ''resume'', ''refunded''] = ''{}''::jsonb)
 or (kind = ''SWEEP'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''FUELING'') and plan - array[''gas'', ''max_fee_per_gas'', ''max_priority_fee_per_gas'', ''l1_fee'', ''legacy'', ''need'', ''fee_limit'', ''energy_counted'', ''bandwidth_counted'', ''energy_spared'', ''bandwidth_spared'', ''fuel_id'', ''float_taken'', ''loan_id'', ''fee_wallet'', ''fee_held'', ''earlier'', ''adopted'', ''height'', ''waits'', ''own''] = ''{}''::jsonb)
 or (kind = ''FUEL'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''REPLACING'') and plan - array[''gas'', ''max_fee_per_gas'', ''max_priority_fee_per_gas'', ''l1_fee'', ''legacy'', ''need'', ''earlier'', ''adopted'', ''fee_limit'', ''for_gas'', ''for_max_fee_per_gas'', ''for_l1_fee'', ''replacement'', ''alone'', ''together'', ''settled'', ''cancel''] = ''{}''::jsonb)
 or (kind = ''DRAIN'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'') and plan - array[''gas'', ''max_fee_per_gas'', ''max_priority_fee_per_gas'', ''l1_fee'', ''legacy'', ''need'', ''earlier'', ''adopted'', ''back_fee'', ''fee_limit'', ''order'', ''reserved_fee''] = ''{}''::jsonb)
 or (kind = ''STAKE'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''FUELING'', ''VOIDING'', ''PARTIAL'') and plan - array[''fuel_id'', ''float_taken'', ''loan_id'', ''earlier'', ''adopted'', ''back_fee'', ''fee_limit'', ''energy_counted'', ''bandwidth_counted'', ''energy_spared'', ''bandwidth_spared'', ''need'', ''resource'', ''step'', ''fees_paid'', ''delay_days'', ''expected_at'', ''order'', ''reserved_fee'', ''adopted_steps'', ''reason'', ''refunded''] = ''{}''::jsonb)
 or (kind = ''UNSTAKE'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''FUELING'', ''VOIDING'', ''PARTIAL'') and plan - array[''fuel_id'', ''float_taken'', ''loan_id'', ''earlier'', ''adopted'', ''back_fee'', ''fee_limit'', ''energy_counted'', ''bandwidth_counted'', ''energy_spared'', ''bandwidth_spared'', ''need'', ''resource'', ''step'', ''fees_paid'', ''delay_days'', ''expected_at'', ''order'', ''reserved_fee'', ''adopted_steps'', ''reason'', ''refunded''] = ''{}''::jsonb)
 or (kind = ''RELEASE'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'', ''FUELING'', ''VOIDING'', ''PARTIAL'') and plan - array[''fuel_id'', ''float_taken'', ''loan_id'', ''earlier'', ''adopted'', ''back_fee'', ''fee_limit'', ''energy_counted'', ''bandwidth_counted'', ''energy_spared'', ''bandwidth_spared'', ''need'', ''resource'', ''step'', ''fees_paid'', ''delay_days'', ''expected_at'', ''order'', ''reserved_fee'', ''adopted_steps'', ''reason'', ''refunded''] = ''{}''::jsonb)
 or (kind = ''LEND'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'') and plan - array[''earlier'', ''adopted'', ''fee_limit'', ''need'', ''resource'', ''reserved_fee'', ''back_fee'', ''settled'', ''ended'', ''step'', ''fees_paid'', ''delay_days'', ''adopted_steps'', ''order''] = ''{}''::jsonb)
 or (kind = ''LEND_BACK'' and state in (''QUEUED'', ''SIGNING'', ''SIGNED'', ''BROADCASTING'', ''CONFIRMING'', ''CONFIRMED'', ''REVERTED'', ''FAILED'') and plan - array[''earlier'', ''adopted'', ''fee_limit'', ''need'', ''resource'', ''reserved_fee'', ''back_fee'', ''settled'', ''ended'', ''step'', ''fees_paid'', ''delay_days'', ''adopted_steps'', ''order''] = ''{}''::jsonb)
 or (kind = ''DEPOSIT'' and state in (''CONFIRMING'', ''SCREENING'', ''FROZEN'', ''SUSPENSE'', ''CREDITED'', ''SWEPT'', ''REORGED'') and plan - array[''screening_since'', ''screening_alerted'', ''generation'', ''frozen_wallet'', ''unknown_sender'', ''senders_released''] = ''{}''::jsonb)
 or (kind = ''TANK_DEPOSIT'' and state in (''CONFIRMING'', ''CREDITED'', ''REORGED'') and plan - array[''generation''] = ''{}''::jsonb); end $$';
alter table events drop constraint if exists events_type;
drop function if exists events_type_holds;
create function events_type_holds(type text)
  returns boolean language plpgsql immutable parallel safe as $$ begin return type in ('transaction.created', 'transaction.updated', 'transaction.confirmed', 'transaction.failed', 'deposit.detected', 'deposit.confirmed', 'deposit.frozen', 'deposit.released', 'deposit.suspended', 'deposit.reverted', 'address.created', 'address.frozen', 'address.unfrozen', 'wallet.created', 'wallet.updated', 'gas_tank.low', 'gas_tank.empty', 'prepaid_fee.low', 'prepaid_fee.empty', 'prepaid_fee.tier_changed', 'staking.staked', 'staking.unstaked', 'staking.releasable', 'staking.released', 'auto_forwarding.created', 'auto_forwarding.deleted', 'aml.screening_overdue', 'invoice.created', 'invoice.updated', 'invoice.processing', 'invoice.paid', 'invoice.expired', 'invoice.invalid', 'exchange_account.created', 'exchange_account.updated', 'exchange_account.failing', 'exchange_account.difference', 'exchange_account.deleted', 'order.created', 'order.updated', 'exchange_transfer.created', 'exchange_transfer.updated', 'webhook.test', 'webhook.disabled'); end $$;
alter table events add constraint events_type check (events_type_holds(type)) not valid;
comment on constraint events_type on events is '
  create function events_type_holds(type text)
  returns boolean language plpgsql immutable parallel safe as $$ begin return type in (''transaction.created'', ''transaction.updated'', ''transaction.confirmed'', ''transaction.failed'', ''deposit.detected'', ''deposit.confirmed'', ''deposit.frozen'', ''deposit.released'', ''deposit.suspended'', ''deposit.reverted'', ''address.created'', ''address.frozen'', ''address.unfrozen'', ''wallet.created'', ''wallet.updated'', ''gas_tank.low'', ''gas_tank.empty'', ''prepaid_fee.low'', ''prepaid_fee.empty'', ''prepaid_fee.tier_changed'', ''staking.staked'', ''staking.unstaked'', ''staking.releasable'', ''staking.released'', ''auto_forwarding.created'', ''auto_forwarding.deleted'', ''aml.screening_overdue'', ''invoice.created'', ''invoice.updated'', ''invoice.processing'', ''invoice.paid'', ''invoice.expired'', ''invoice.invalid'', ''exchange_account.created'', ''exchange_account.updated'', ''exchange_account.failing'', ''exchange_account.difference'', ''exchange_account.deleted'', ''order.created'', ''order.updated'', ''exchange_transfer.created'', ''exchange_transfer.updated'', ''webhook.test'', ''webhook.disabled''); end $$';
create table if not exists database_functions (
       name text primary key, hash text not null, applied_at timestamptz not null default now());
-- Spends nonces and counts requests in one call, after their signatures were verified. The arrays hold one request at each place.
-- Answers (nonce_ok, requests in this window) in their order. A limited request does not spend its nonce; of two with one nonce the
-- first has it. Rows are locked in one order, all windows before all nonces, so that no two calls wait for each other.
create or replace function admit_requests(
  p_api_keys uuid[], p_nonces text[], p_subjects text[], p_limits integer[], p_window timestamptz, p_now timestamptz)
returns table (nonce_ok boolean, requests integer)
language plpgsql as $$
begin
  return query
    with asked as (
      select a.*, row_number() over (partition by a.subject order by a.at desc) later
      from unnest(p_api_keys, p_nonces, p_subjects, p_limits) with ordinality a(api_key, nonce, subject, most, at)
    ), counted as (
      insert into rate_windows as w (subject, window_start, requests)
        select a.subject, p_window, count(*) from asked a group by a.subject order by a.subject
        on conflict (subject, window_start) do update set requests = w.requests + excluded.requests
        returning w.subject, w.requests
    ), placed as (
      select a.at, a.api_key, a.nonce, a.most, (c.requests - a.later + 1)::integer place from asked a join counted c using (subject)
    ), entitled as (
      select distinct on (p.api_key, p.nonce) p.at, p.api_key, p.nonce from placed p where p.place <= p.most
        order by p.api_key, p.nonce, p.at
    ), spent as (
      insert into request_nonces (api_key, nonce, expires_at)
        select e.api_key, e.nonce, p_now + interval '10 minutes' from entitled e order by e.api_key, e.nonce
        on conflict do nothing
        returning request_nonces.api_key, request_nonces.nonce
    )
    select p.place > p.most or (e.at is not null and s.nonce is not null), p.place
    from placed p
      left join entitled e using (at)
      left join spent s on s.api_key = e.api_key and s.nonce = e.nonce
    order by p.at;
end $$;
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
-- Keeps the counts of a sub-account's list of exchange transfers: see migrations/019_list_counts.sql.
create or replace function count_exchange_transfer() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('exchange_transfers', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('account_id', old.account_id::text, 'asset', old.asset, 'direction', old.direction, 'status', old.status), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('exchange_transfers', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('account_id', new.account_id::text, 'asset', new.asset, 'direction', new.direction, 'status', new.status), 1);
  end if;
  return null;
end $$;

create or replace trigger exchange_transfers_counted after insert or delete on exchange_transfers
  for each row execute function count_exchange_transfer();
create or replace trigger exchange_transfers_recounted after update on exchange_transfers
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.account_id is distinct from new.account_id or old.asset is distinct from new.asset or
    old.direction is distinct from new.direction or old.status is distinct from new.status
  ) execute function count_exchange_transfer();
-- Keeps the counts of a sub-account's list of invoices: see migrations/019_list_counts.sql.
create or replace function count_invoice() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('invoices', old.sub_account_id,
      date_trunc('hour', old.created_at, 'UTC'),
      jsonb_build_object('status', old.status, 'exception', old.exception), -1);
  end if;
  if tg_op <> 'DELETE' then
    insert into list_deltas (list, owner, bucket, dims, n) values ('invoices', new.sub_account_id,
      date_trunc('hour', new.created_at, 'UTC'),
      jsonb_build_object('status', new.status, 'exception', new.exception), 1);
  end if;
  return null;
end $$;

create or replace trigger invoices_counted after insert or delete on invoices
  for each row execute function count_invoice();
create or replace trigger invoices_recounted after update on invoices
  for each row when (
    old.sub_account_id is distinct from new.sub_account_id or old.created_at is distinct from new.created_at or
    old.status is distinct from new.status or old.exception is distinct from new.exception
  ) execute function count_invoice();
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
-- Makes a wallet, the addresses that belong to it, its network's gas tank and its event, in one call.
-- "addresses": [{"address", "sub_account", "path_index", "kind"}], each once per network, the first the wallet's omnibus address;
-- "tank": {"address", "threshold", "first_fill"} or null; "shown": what the event tells.
-- Answers null, or the id of the wallet that there is already. Raises CU008 where deposits wait for the wallet: nothing is written
-- then. Not if "credits" is true: the caller credits them in the same transaction.
create or replace function create_wallet(p jsonb) returns uuid
language plpgsql as $$
declare
  workspace uuid := (p->>'workspace_id')::uuid;
  owner uuid := (p->>'sub_account_id')::uuid;
begin
  insert into wallets (id, workspace_id, sub_account_id, asset, network, created_at)
    values ((p->>'id')::uuid, workspace, owner, p->>'asset', p->>'network', (p->>'created_at')::timestamptz) on conflict do nothing;
  if not found then return (select id from wallets where sub_account_id = owner and asset = p->>'asset'); end if;
  insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
    select p->>'network', a.address, workspace, a.sub_account, a.path_index, a.kind
    from jsonb_to_recordset(p->'addresses') a(address text, sub_account uuid, path_index integer, kind text)
    on conflict do nothing;
  insert into wallet_addresses (wallet_id, network, address, handed_out)
    values ((p->>'id')::uuid, p->>'network', p#>>'{addresses,0,address}', false) on conflict do nothing;
  if not (p->>'credits')::boolean then
    perform 1 from transactions
      where kind = 'DEPOSIT' and sub_account_id = owner and asset = p->>'asset' and wallet_id is null and address_tag is null limit 1;
    if found then raise exception 'deposits wait' using errcode = 'CU008'; end if;
  end if;
  if p->'tank' <> 'null' then
    insert into gas_tanks (workspace_id, network, address, threshold, first_fill)
      values (workspace, p->>'network', p#>>'{tank,address}', (p#>>'{tank,threshold}')::numeric, (p#>>'{tank,first_fill}')::numeric)
      on conflict do nothing;
  end if;
  perform emit_event(workspace, owner, 'wallet.created', p->'shown');
  return null;
end $$;
-- Creates a withdrawal: idempotency row, reservations of amount and platform fee, transfer, event, in one call.
-- "plan", "updated_at" and "next_run_at" are the row's as they are.
-- Answers {"replayed": false}, or {"replayed": true, "response", "payload_hash"}: what was answered before.
-- Raises CU002 when the wallet is inactive, CU003 when it holds too little, CU001 when the prepaid fee account does, CU004 and CU005
-- as invoice_refund.sql says, CU006 when the exchange account that it goes to is unlinked, CU007 when the fee was quoted by another
-- tier ("prepaid_tier") than the workspace has.
-- All of it after the idempotency row, for which it waits: what was answered once is answered again, whatever has changed since.
create or replace function create_withdrawal(p jsonb) returns jsonb
language plpgsql as $$
declare
  existing idempotency%rowtype;
  wallet uuid := (p->>'wallet_id')::uuid;
  workspace uuid := (p->>'workspace_id')::uuid;
  total numeric := (p->>'amount')::numeric + (p->>'fee_reserve')::numeric;
begin
  if p->>'sequence_id' is not null then
    insert into idempotency (wallet_id, sequence_id, transaction_id, payload_hash, response)
      values (wallet, p->>'sequence_id', (p->>'id')::uuid, p->>'payload_hash', p->>'response')
      on conflict do nothing;
    if not found then
      select * into existing from idempotency where wallet_id = wallet and sequence_id = p->>'sequence_id';
      return jsonb_build_object('replayed', true, 'response', existing.response, 'payload_hash', existing.payload_hash);
    end if;
  end if;
  perform 1 from wallets where id = wallet and status = 'active';
  if not found then raise exception 'inactive' using errcode = 'CU002'; end if;
  if not spendable(workspace, wallet, p->>'asset', total, (p->>'chain_reserve')::numeric) then
    raise exception 'insufficient' using errcode = 'CU003';
  end if;
  perform write_transaction(p);
  perform ledger_post('reserve', p->>'id', jsonb_build_array(
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'available', 'amount', (-total)::text),
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'reserved', 'amount', total::text)));
  perform emit_event(workspace, (p->>'sub_account_id')::uuid, 'transaction.created', (p->>'response')::jsonb);
  if p->>'platform_fee' is not null then
    perform 1 from prepaid_accounts where workspace_id = workspace and tier <> p->>'prepaid_tier';
    if found then raise exception 'tier' using errcode = 'CU007'; end if;
    perform prepaid_reserve(workspace, p->>'id', (p->>'platform_fee')::numeric, (p->>'platform_fee_least')::numeric);
  end if;
  -- Last, for whoever credits a deposit locks accounts before the invoice too.
  if p->>'invoice_id' is not null then perform invoice_refund(p->>'invoice_id', (p->>'id')::uuid); end if;
  if p->'exchange_transfer' <> 'null' then
    perform exchange_transfer_open(p->'exchange_transfer', (p->>'id')::uuid, p->>'exchange_shown');
  end if;
  return '{"replayed": false}';
end $$;
-- A list of withdrawals of one wallet in one commit, each as create_withdrawal writes it. Answers, in their order, what that answers, or
-- {"code", "message", "detail"} where it raised something: then nothing of that one is written, and the others are. What is ended for
-- somebody else's sake ends as a whole, and is tried again as a whole.
create or replace function create_withdrawals(p jsonb) returns jsonb
language plpgsql as $$
declare
  answers jsonb[] := array_fill(null::jsonb, array[jsonb_array_length(p)]);
  item record;
  told_code text;
  told_message text;
  told_detail text;
begin
  -- In one order, so that two calls with the same sequence_ids do not wait for each other.
  for item in select w.value, w.at from jsonb_array_elements(p) with ordinality w(value, at) order by w.value->>'sequence_id', w.at loop
    begin
      answers[item.at] := create_withdrawal(item.value);
    exception when deadlock_detected or serialization_failure then raise;
    when others then
      get stacked diagnostics told_code = returned_sqlstate, told_message = message_text, told_detail = pg_exception_detail;
      answers[item.at] := jsonb_build_object('code', told_code, 'message', told_message, 'detail', told_detail);
    end;
  end loop;
  return to_jsonb(answers);
end $$;
-- Adds to the outbox.
create or replace function emit_event(p_workspace uuid, p_sub_account uuid, p_type text, p_payload jsonb) returns void
language sql as $$
  insert into events (workspace_id, sub_account_id, type, payload) values (p_workspace, p_sub_account, p_type, p_payload)
$$;
-- Opens the way of a transfer to an exchange, in the commit that makes the transfer: `p` holds the columns by name.
create or replace function exchange_transfer_open(p jsonb, transfer uuid, shown text) returns void
language plpgsql as $$
begin
  -- One that is being unlinked takes no more coins.
  perform 1 from exchange_accounts where id = (p->>'account_id')::uuid and status <> 'deleted' for share;
  if not found then raise exception 'unlinked' using errcode = 'CU006'; end if;
  insert into exchange_addresses (account_id, asset, address, address_tag, updated_at)
    values ((p->>'account_id')::uuid, p->>'asset', p->>'address', p->>'address_tag', (p->>'created_at')::timestamptz)
    on conflict (account_id, asset)
      do update set address = excluded.address, address_tag = excluded.address_tag, updated_at = excluded.updated_at;
  insert into exchange_transfers (id, workspace_id, sub_account_id, account_id, exchange, direction, asset, network, coin, amount, address,
      address_tag, transaction_id, state, response, next_run_at, created_at, updated_at)
    select t.id, t.workspace_id, t.sub_account_id, t.account_id, t.exchange, 'to_exchange', t.asset, t.network, t.coin, t.amount, t.address,
      t.address_tag, transfer, 'MOVING', '', t.created_at, t.created_at, t.created_at
    from jsonb_populate_record(null::exchange_transfers, p) t;
  perform emit_event((p->>'workspace_id')::uuid, (p->>'sub_account_id')::uuid, 'exchange_transfer.created', shown::jsonb);
end $$;
-- Adds up to `p_limit` changes of lists to their counts, and answers how many there were. Several may fold at a time: each takes
-- others, and all lock the counts in one order.
create or replace function fold_list_counts(p_limit integer) returns integer
language sql as $$
  with taken as (
    delete from list_deltas where id in (select id from list_deltas order by id limit p_limit for update skip locked)
    returning list, owner, bucket, dims, n
  ), changes as (
    select list, owner, l.level, l.bucket, dims, sum(n) n
    from taken cross join lateral (values
      (0::smallint, '-infinity'::timestamptz), (1::smallint, date_trunc('day', taken.bucket, 'UTC')), (2::smallint, taken.bucket)
    ) l (level, bucket)
    group by list, owner, l.level, l.bucket, dims having sum(n) <> 0
    order by list, owner, l.level, l.bucket, dims
  ), folded as (
    insert into list_counts as c (list, owner, level, bucket, dims, n) select list, owner, level, bucket, dims, n from changes
    on conflict (list, owner, level, bucket, dims) do update set n = c.n + excluded.n
  )
  select count(*)::integer from taken
$$;
-- Links a transfer with the invoice whose payments it gives back. Raises CU004 where more of its asset would be given back than
-- has been credited; what failed gave nothing back. Raises CU005 while the invoice is open: what is given back would still pay it.
create or replace function invoice_refund(p_invoice text, p_transaction uuid) returns void
language plpgsql as $$
declare
  refund transactions%rowtype;
  paid numeric;
  given numeric;
begin
  perform 1 from invoices where id = p_invoice for update;
  perform 1 from invoices where id = p_invoice and status in ('Pending', 'Processing');
  if found then raise exception 'open' using errcode = 'CU005'; end if;
  select * into refund from transactions where id = p_transaction;
  select coalesce(sum(amount), 0) into paid from invoice_payments
    where invoice_id = p_invoice and asset = refund.asset and status = 'confirmed';
  select coalesce(sum(t.amount), 0) into given from invoice_refunds r join transactions t on t.id = r.transaction_id
    where r.invoice_id = p_invoice and t.asset = refund.asset and t.status <> 'failed';
  if given + refund.amount > paid then
    raise exception 'refund' using errcode = 'CU004', detail = greatest(0, paid - given)::text;
  end if;
  insert into invoice_refunds (transaction_id, invoice_id) values (p_transaction, p_invoice);
end $$;
-- The id of an account, which is made where there is none. Each form has a statement of its own: "is not distinct from" uses no index.
create or replace function ledger_account(p_workspace uuid, p_wallet uuid, p_asset text, p_kind text, p_address text) returns bigint
language plpgsql as $$
declare
  found_id bigint;
begin
  -- A second look finds what another transaction made meanwhile.
  for attempt in 1..2 loop
    if p_wallet is null and p_address is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is null and asset = p_asset and kind = p_kind and address is null;
    elsif p_wallet is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is null and asset = p_asset and kind = p_kind and address = p_address;
    elsif p_address is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id = p_wallet and asset = p_asset and kind = p_kind and address is null;
    else
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id = p_wallet and asset = p_asset and kind = p_kind and address = p_address;
    end if;
    exit when found_id is not null or attempt = 2;
    insert into ledger_accounts (workspace_id, wallet_id, asset, kind, address) values (p_workspace, p_wallet, p_asset, p_kind, p_address)
      on conflict do nothing returning id into found_id;
    exit when found_id is not null;
  end loop;
  return found_id;
end $$;
-- p_postings: [{"workspace","wallet","asset","kind","address","amount"}]; amounts as text. Returns false when this
-- (kind, reference) was posted before. p_overdraw lets balances go below zero (reorganisations only).
create or replace function ledger_post(p_kind text, p_reference text, p_postings jsonb, p_overdraw boolean default false) returns boolean
language plpgsql as $$
declare
  entry bigint;
  posting record;
begin
  insert into ledger_entries (kind, reference) values (p_kind, p_reference) on conflict do nothing returning id into entry;
  if entry is null then return false; end if;
  -- Accounts are always locked in the order of their ids, so that two entries cannot wait for each other.
  for posting in
    select a.account, a.amount, sum(a.amount) over (partition by a.asset) as difference
    from (
      select ledger_account(p.workspace, p.wallet, p.asset, p.kind, p.address) as account, p.asset, sum(p.amount) as amount
      from jsonb_to_recordset(p_postings) as p(workspace uuid, wallet uuid, asset text, kind text, address text, amount numeric)
      group by 1, 2
    ) a
    order by a.account
  loop
    if posting.difference <> 0 then raise exception 'ledger entry % % does not balance', p_kind, p_reference; end if;
    if posting.amount <> 0 then
      with moved as (
        update ledger_accounts
          set balance = balance + posting.amount, overdrawn = (overdrawn or p_overdraw) and balance + posting.amount < 0
          where id = posting.account
      )
      insert into ledger_postings (entry_id, account_id, amount) values (entry, posting.account, posting.amount);
    end if;
  end loop;
  return true;
end $$;
-- Notes each state of a transaction with the time and reason that the row has then.
create or replace function note_state() returns trigger
language plpgsql as $$
begin
  insert into transaction_states (transaction_id, state, reason, at) values (new.id, new.state, new.failure_reason, new.updated_at);
  return null;
end $$;

create or replace trigger transactions_first_state after insert on transactions
  for each row execute function note_state();
create or replace trigger transactions_next_state after update of state on transactions
  for each row when (old.state is distinct from new.state) execute function note_state();
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
-- Ends the reservation of an order's platform fee, once: so much of it is taken, the rest is given back.
create or replace function order_fee_settle(p_order uuid, p_charged numeric, p_volume numeric, p_day date) returns void
language plpgsql as $$
declare
  ended orders%rowtype;
  reference text := 'order:' || p_order;
begin
  select * into ended from orders where id = p_order;
  perform prepaid_lock(ended.workspace_id);
  if p_charged > 0 and prepaid_move(ended.workspace_id, 'prepaid-charge', reference, 'prepaid_reserved', 'fees', p_charged) then
    insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (ended.workspace_id, p_day, p_volume)
      on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  end if;
  if ended.platform_fee > p_charged and prepaid_move(
    ended.workspace_id, 'prepaid-refund', reference, 'prepaid_reserved', 'prepaid', ended.platform_fee - p_charged) then
    update prepaid_accounts set told = 2 where workspace_id = ended.workspace_id and told = 3;
  end if;
end $$;
-- The operator's top-up or correction. Answers the new balance; raises CU001 where it would fall below zero.
create or replace function prepaid_adjust(p_workspace uuid, p_reference text, p_amount numeric, p_least numeric) returns numeric
language plpgsql as $$
declare
  account prepaid_accounts%rowtype := prepaid_lock(p_workspace);
  held numeric := prepaid_balance(p_workspace);
begin
  if held + p_amount < 0 then raise exception 'prepaid fee account' using errcode = 'CU001', detail = held::text; end if;
  if not prepaid_move(p_workspace, 'prepaid-adjust', p_reference, 'chain', 'prepaid', p_amount) then return held; end if;
  if p_amount > 0 then
    update prepaid_accounts set level = held + p_amount, told = 0 where workspace_id = p_workspace returning * into account;
  end if;
  perform prepaid_tell(account, held + p_amount, p_least);
  return held + p_amount;
end $$;
-- What the account holds, without what is reserved.
create or replace function prepaid_balance(p_workspace uuid) returns numeric
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, null, 'USD', 'prepaid', null);
begin
  return (select balance from ledger_accounts where id = account);
end $$;
-- Takes the reserved fee of a transaction, once. False: none was reserved, or it was taken or given back before.
create or replace function prepaid_charge(p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  charged transactions%rowtype;
begin
  select * into charged from transactions where id = p_transaction;
  if charged.platform_fee is null then return false; end if;
  perform prepaid_lock(charged.workspace_id);
  if not exists (select 1 from ledger_entries where kind = 'prepaid-reserve' and reference = p_transaction::text)
    or exists (select 1 from ledger_entries where kind = 'prepaid-refund' and reference = p_transaction::text) then return false; end if;
  if not prepaid_move(charged.workspace_id, 'prepaid-charge', p_transaction::text, 'prepaid_reserved', 'fees', charged.platform_fee) then
    return false;
  end if;
  insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (charged.workspace_id, p_day, coalesce(charged.amount_usd, 0))
    on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  return true;
end $$;
-- The account's row, locked until the transaction ends.
create or replace function prepaid_lock(p_workspace uuid) returns prepaid_accounts
language plpgsql as $$
declare
  account prepaid_accounts%rowtype;
begin
  select * into account from prepaid_accounts where workspace_id = p_workspace for update;
  if not found then
    insert into prepaid_accounts (workspace_id) values (p_workspace) on conflict do nothing;
    select * into account from prepaid_accounts where workspace_id = p_workspace for update;
  end if;
  return account;
end $$;
-- Posts one movement of the account. False: this (kind, reference) was posted before.
create or replace function prepaid_move(p_workspace uuid, p_kind text, p_reference text, p_from text, p_to text, p_amount numeric)
returns boolean
language sql as $$
  select ledger_post(p_kind, p_reference, jsonb_build_array(
    jsonb_build_object('workspace', p_workspace, 'asset', 'USD', 'kind', p_from, 'amount', (-p_amount)::text),
    jsonb_build_object('workspace', p_workspace, 'asset', 'USD', 'kind', p_to, 'amount', p_amount::text)))
$$;
-- Gives the fee of a transaction back that failed, once, whether it was taken already or only reserved.
create or replace function prepaid_release(p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  failed transactions%rowtype;
  charged boolean;
begin
  select * into failed from transactions where id = p_transaction;
  if failed.platform_fee is null then return false; end if;
  perform prepaid_lock(failed.workspace_id);
  if not exists (select 1 from ledger_entries where kind = 'prepaid-reserve' and reference = p_transaction::text) then return false; end if;
  charged := exists (select 1 from ledger_entries where kind = 'prepaid-charge' and reference = p_transaction::text);
  if not prepaid_move(failed.workspace_id, 'prepaid-refund', p_transaction::text,
    case when charged then 'fees' else 'prepaid_reserved' end, 'prepaid', failed.platform_fee) then
    return false;
  end if;
  if charged then
    insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (failed.workspace_id, p_day, -coalesce(failed.amount_usd, 0))
      on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  end if;
  -- What was empty can pay again, and may become empty again.
  update prepaid_accounts set told = 2 where workspace_id = failed.workspace_id and told = 3;
  return true;
end $$;
-- Holds a fee back. Raises CU001 with the balance as its detail when the account holds less.
create or replace function prepaid_reserve(p_workspace uuid, p_reference text, p_fee numeric, p_least numeric) returns void
language plpgsql as $$
declare
  account prepaid_accounts%rowtype := prepaid_lock(p_workspace);
  held numeric := prepaid_balance(p_workspace);
begin
  if held < p_fee then raise exception 'prepaid fee account' using errcode = 'CU001', detail = held::text; end if;
  if prepaid_move(p_workspace, 'prepaid-reserve', p_reference, 'prepaid', 'prepaid_reserved', p_fee) and p_fee > 0 then
    perform prepaid_tell(account, held - p_fee, p_least);
  end if;
end $$;
-- Tells, once until the next top-up, that the balance has fallen: to a fifth, to a twentieth, below the least fee.
create or replace function prepaid_tell(p_account prepaid_accounts, p_balance numeric, p_least numeric) returns void
language plpgsql as $$
declare
  stage smallint := case
    when p_balance <= 0 or p_balance < p_least then 3
    when p_balance * 20 <= p_account.level then 2
    when p_balance * 5 <= p_account.level then 1
    else 0 end;
begin
  if stage <= p_account.told then return; end if;
  update prepaid_accounts set told = stage where workspace_id = p_account.workspace_id;
  perform emit_event(p_account.workspace_id, null,
    case when stage = 3 then 'prepaid_fee.empty' else 'prepaid_fee.low' end, jsonb_build_object(
    'balance', trim_scale(p_balance / 1000000), 'currency', 'USD',
    'percent', case stage when 1 then 20 when 2 then 5 else 0 end, 'topped_up_to', trim_scale(p_account.level / 1000000)));
end $$;
-- Whether a wallet can send this much, its row locked if so. One whose chain keeps a reserve on its account sends no more
-- than what lies above it. The account is named once: a volatile function in a condition is asked for every row of the
-- table.
create or replace function spendable(p_workspace uuid, p_wallet uuid, p_asset text, p_total numeric, p_chain_reserve numeric)
returns boolean
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, p_wallet, p_asset, 'available', null);
begin
  perform 1 from ledger_accounts where id = account and balance >= p_total + coalesce(p_chain_reserve, 0) for update;
  return found;
end $$;
-- The one place where a row of transactions is made. `p` holds its columns by name; what is absent has the table's default.
-- The columns are named once more where they are read: read of the table's own type, all of its columns would be.
-- `unless_there`: answers null instead of raising where an index says that there is one already.
create or replace function write_transaction(p jsonb, unless_there boolean default false) returns setof transactions
language plpgsql as $$
begin
  return query insert into transactions (
      id, kind, workspace_id, sub_account_id, wallet_id, parent_id, asset, network, amount, fee, fee_asset,
      source_type, source_id, destination_type, destination_id, address_tag, memo, sequence_id,
      state, status, hash, confirmations, request, fee_rate, fee_level, plan,
      created_at, updated_at, next_run_at, amount_usd, platform_fee)
    select
      t.id, t.kind, t.workspace_id, t.sub_account_id, t.wallet_id, t.parent_id, t.asset, t.network,
      t.amount, coalesce(t.fee, 0), t.fee_asset,
      t.source_type, t.source_id, t.destination_type, t.destination_id, t.address_tag, t.memo, t.sequence_id,
      t.state, t.status, t.hash, coalesce(t.confirmations, 0), t.request, t.fee_rate, t.fee_level, coalesce(t.plan, '{}'),
      t.created_at, t.updated_at, t.next_run_at, t.amount_usd, t.platform_fee
    from jsonb_to_record(p) as t(
      id uuid, kind text, workspace_id uuid, sub_account_id uuid, wallet_id uuid, parent_id uuid, asset text, network text, amount numeric,
      fee numeric, fee_asset text, source_type text, source_id text, destination_type text, destination_id text, address_tag text,
      memo text, sequence_id text, state text, status text, hash text, confirmations integer, request jsonb, fee_rate text,
      fee_level text, plan jsonb, created_at timestamptz, updated_at timestamptz, next_run_at timestamptz, amount_usd numeric,
      platform_fee numeric)
    on conflict do nothing
    returning *;
  if not found and not unless_there then
    raise exception 'transaction % is there already', p->>'id' using errcode = 'unique_violation';
  end if;
end $$;

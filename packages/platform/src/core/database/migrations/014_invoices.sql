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
  -- Millionths of the amount that may be missing; and seconds of an invoice's life. Null: the
  -- installation's.
  tolerance integer,
  expires_in_s integer,
  updated_at timestamptz not null
);

create table if not exists invoices (
  -- Random: everyone who knows it can see the invoice and pay it.
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
  -- It is also to be looked at when the scan of a network has come to a height: a payment is deep
  -- enough then.
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
  -- USD of one coin, with 12 decimals; null: the amount itself was asked for, and no price was
  -- known.
  rate numeric(78, 0),
  rate_at timestamptz,
  -- Blocks that a payment needs beside being credited.
  confirmations integer not null,
  -- Null until it is chosen. Then it belongs to this invoice permanently.
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
-- The last time at which the whole chain was known up to its tip: until then, whatever is found
-- later was not there.
alter table network_scans add column if not exists known_at timestamptz;
-- The same, as it was when a deposit was found: an outage of ours makes no payer late. Null: found
-- before there were invoices.
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

-- What waits, or waited, in a network's pool of transactions for an address of an invoice: one row
-- a transaction, the sum of what it pays there. It stays when the block has come: it says that the
-- payment was made before.
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
  -- As it was when the invoice was last looked at; null: a deposit stands for it, or it was not
  -- looked at yet.
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

-- By which a server is told of the invoices that name an address there: made by itself, one for
-- each origin.
alter table webhooks add column if not exists invoice_origin text;
create unique index if not exists webhooks_invoice_origin on webhooks (sub_account_id, invoice_origin) where invoice_origin is not null;
-- Where it goes, if not where its webhook says.
alter table webhook_deliveries add column if not exists url text;

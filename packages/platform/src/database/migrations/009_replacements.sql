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

-- First attempt of the same transaction, whose nonce or inputs this one takes over.
alter table chain_transactions add column replaces uuid references chain_transactions;
alter table chain_transactions add column replacement_id uuid references replacements;
drop index chain_transactions_nonce;
create unique index chain_transactions_nonce on chain_transactions (network, account, nonce) where state <> 'VOID' and nonce is not null and replaces is null;
-- REPLACED: another attempt of the same transaction is final, so that this one can never be included.
alter table chain_transactions drop constraint chain_transactions_state_check;
alter table chain_transactions add constraint chain_transactions_state_check check (state in ('BUILT', 'SIGNED', 'INCLUDED', 'CONFIRMED', 'EXPIRED', 'REPLACED', 'VOID'));

-- Change of one of several attempts: nobody knows yet which of them will exist.
alter table utxos add column contested boolean not null default false;

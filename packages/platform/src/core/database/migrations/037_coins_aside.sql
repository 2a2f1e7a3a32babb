-- Outputs at own addresses that are not credited and never spent because of what they carry
-- (deposits/coins-aside.ts). They are in no account of the books. A reorganisation deletes those of
-- its blocks.
create table coins_aside (
  id uuid not null,
  workspace_id uuid not null,
  sub_account_id uuid not null,
  network text not null,
  txid text not null check (length(txid) <= 128),
  vout integer not null check (vout >= 0),
  address text not null,
  -- Smallest unit of the network's coin.
  value numeric(78, 0) not null check (value >= 0),
  reason text not null check (reason in ('CASH_TOKENS')),
  -- What the output carries, where the node shows it in a form that can be read.
  token_category text check (token_category ~ '^[0-9a-f]{64}$'),
  token_amount text check (token_amount ~ '^[0-9]{1,19}$'),
  nft_capability text check (nft_capability in ('none', 'mutable', 'minting')),
  nft_commitment text check (length(nft_commitment) <= 2048),
  block_height bigint not null,
  block_hash text not null,
  found_at timestamptz not null,
  primary key (workspace_id, id),
  unique (workspace_id, network, txid, vout),
  foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id),
  foreign key (workspace_id, network, address) references chain_addresses (workspace_id, network, address),
  check ((token_category is null) = (token_amount is null)),
  check ((nft_capability is null) = (nft_commitment is null))
);
create index coins_aside_list on coins_aside (workspace_id, sub_account_id, found_at desc, id desc);
-- What a reorganisation deletes.
create index coins_aside_block on coins_aside (network, block_height);

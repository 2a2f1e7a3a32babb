-- Primary, unique and foreign keys that begin with the workspace: a row of one workspace cannot
-- name a row of another. What stays unique over all of them says so here, and in
-- docs/production/growing.md.

-- What all that belongs to a sub-account refers to. Its own key stays: few rows, which every shard
-- would have.
alter table sub_accounts add constraint sub_accounts_of unique (workspace_id, id);

-- An address is one workspace's, over all of them: the primary key (network, address) stays, and
-- says whose a deposit is.
alter table chain_addresses add constraint chain_addresses_of unique (workspace_id, network, address);
drop index chain_addresses_path;
create unique index chain_addresses_path on chain_addresses (workspace_id, network, sub_account_id, path_index) nulls not distinct;

alter table wallets drop constraint wallets_pkey;
alter table wallets
  drop constraint wallets_sub_account_id_asset_key,
  add constraint wallets_asset unique (workspace_id, sub_account_id, asset);

alter table wallet_addresses drop constraint wallet_addresses_pkey;
drop index wallet_addresses_place;
create unique index wallet_addresses_place on wallet_addresses (workspace_id, wallet_id, address, address_tag) nulls not distinct;

alter table wallet_status_changes drop constraint wallet_status_changes_pkey;
drop index wallet_status_changes_wallet;
create index wallet_status_changes_wallet on wallet_status_changes (workspace_id, wallet_id, id);

-- The books.
alter table ledger_accounts drop constraint ledger_accounts_pkey;
drop index ledger_accounts_address;
create index ledger_accounts_address on ledger_accounts (workspace_id, address) where address is not null;
alter table ledger_entries add constraint ledger_entries_once unique (workspace_id, kind, reference);
create index ledger_postings_account on ledger_postings (workspace_id, account_id);

-- Transactions.
alter table transactions drop constraint transactions_pkey;
drop index transactions_list, transactions_hash, transactions_parent, transactions_sequence, transactions_sweep, transactions_sweep_height,
  transactions_staking, transactions_wallet_list, transactions_source, transactions_destination, transactions_memo, transactions_failed,
  transactions_pending, transactions_seldom, transactions_waiting, transactions_fuel, transactions_wallet_queue;
create index transactions_list on transactions (workspace_id, sub_account_id, created_at desc, id desc);
-- By which anybody's is found: to say that it is another workspace's, and for the operator's
-- commands.
create index transactions_text on transactions ((id::text));
create index transactions_hash on transactions (workspace_id, hash) where hash is not null;
create index transactions_parent on transactions (workspace_id, parent_id) where parent_id is not null;
create index transactions_sequence on transactions (workspace_id, sub_account_id, sequence_id) where sequence_id is not null;
-- The address that is swept is one workspace's, as chain_addresses says.
create unique index transactions_sweep on transactions (workspace_id, network, source_id, asset)
  where kind = 'SWEEP' and status = 'pending' and not plan ? 'adopted';
create unique index transactions_sweep_height on transactions (workspace_id, network, source_id, asset, (plan->>'height'))
  where kind = 'SWEEP' and status <> 'failed';
create index transactions_staking on transactions (workspace_id, wallet_id)
  where kind in ('STAKE', 'UNSTAKE', 'RELEASE') and status = 'pending';
create index transactions_wallet_list on transactions (workspace_id, sub_account_id, asset, created_at desc, id desc);
create index transactions_source on transactions (workspace_id, sub_account_id, lower(source_id), created_at desc, id desc)
  where source_id is not null;
create index transactions_destination on transactions (workspace_id, sub_account_id, lower(destination_id), created_at desc, id desc)
  where destination_id is not null;
create index transactions_memo on transactions (workspace_id, sub_account_id, memo, created_at desc, id desc) where memo is not null;
create index transactions_failed on transactions (workspace_id, sub_account_id, created_at desc, id desc) where status = 'failed';
create index transactions_pending on transactions (workspace_id, sub_account_id, created_at desc, id desc) where status = 'pending';
create index transactions_seldom on transactions (workspace_id, sub_account_id, kind, created_at desc, id desc)
  where kind in ('STAKE', 'UNSTAKE', 'RELEASE', 'DRAIN', 'LEND', 'LEND_BACK');
create index transactions_waiting on transactions (workspace_id, sub_account_id, asset) where kind = 'DEPOSIT' and wallet_id is null;
create index transactions_fuel on transactions (workspace_id, network, destination_id) where kind = 'FUEL' and status = 'pending';
create index transactions_wallet_queue on transactions (workspace_id, wallet_id, created_at, id)
  where state = 'QUEUED' and status = 'pending';

create index transaction_states_transaction on transaction_states (workspace_id, transaction_id, id);


alter table replacements drop constraint replacements_pkey;
drop index replacements_transaction, replacements_open;
create index replacements_transaction on replacements (workspace_id, transaction_id, created_at);
create unique index replacements_open on replacements (workspace_id, transaction_id) where state in ('PENDING', 'FUELING');

-- Numbers and hashes stay unique over all workspaces: chain_transactions_nonce,
-- chain_transactions_hash.
alter table chain_transactions add constraint chain_transactions_attempt unique (workspace_id, transaction_id, attempt);
create index chain_transactions_account on chain_transactions (workspace_id, network, account, nonce) where account is not null;
create index chain_transactions_unsigned on chain_transactions (workspace_id, network, account, nonce) where state = 'BUILT';
-- What a replacement that is given up had built.
create index chain_transactions_replacement on chain_transactions (workspace_id, replacement_id) where replacement_id is not null;

-- A payment on a chain is credited once, no matter who owns the address: deposits_identity stays over all
-- workspaces.

create index deposits_place on deposits (workspace_id, network, address, coalesce(tag, ''));

-- A coin is there once, over all workspaces.
create unique index utxos_coin on utxos (network, txid, vout);
alter table utxos drop constraint utxos_pkey;
drop index utxos_wallet;
create index utxos_wallet on utxos (workspace_id, wallet_id) where spent_by is null;
create index utxos_spent_by on utxos (workspace_id, spent_by) where spent_by is not null;

-- Screening.
alter table aml_settings drop constraint aml_settings_pkey;
alter table frozen_addresses drop constraint frozen_addresses_pkey;
drop index frozen_addresses_active, frozen_addresses_key;
create unique index frozen_addresses_active on frozen_addresses (workspace_id, sub_account_id, space, address_key)
  where unfrozen_at is null;
create index frozen_addresses_key on frozen_addresses (workspace_id, sub_account_id, space, address_key);
alter table aml_holds drop constraint aml_holds_pkey;
drop index aml_holds_freeze;
create index aml_holds_freeze on aml_holds (workspace_id, freeze_id);
alter table aml_screenings drop constraint aml_screenings_pkey;
drop index aml_screenings_transaction;
create index aml_screenings_transaction on aml_screenings (workspace_id, transaction_id);

-- Stakes, fuel, forwards.
alter table cooldowns drop constraint cooldowns_pkey;
drop index cooldowns_open;
create index cooldowns_open on cooldowns (workspace_id, network, account, release_at) where released_by is null;
create index cooldowns_wallet_open on cooldowns (workspace_id, wallet_id, release_at) where released_by is null;
alter table fuel_parts drop constraint fuel_parts_pkey;
drop index fuel_parts_transaction;
create index fuel_parts_transaction on fuel_parts (workspace_id, transaction_id);
alter table forward_rules drop constraint forward_rules_pkey;
create index forward_rules_text on forward_rules ((id::text));
drop index forward_rules_one, forward_rules_list;
create unique index forward_rules_one on forward_rules (workspace_id, wallet_id) where state in ('PENDING', 'ACTIVE', 'PAUSED');
create index forward_rules_list on forward_rules (workspace_id, sub_account_id, created_at desc, id desc);
alter table forward_deposits drop constraint forward_deposits_pkey;
drop index forward_deposits_transaction;
create index forward_deposits_transaction on forward_deposits (workspace_id, transaction_id);
alter table forwards drop constraint forwards_pkey;
drop index forwards_rule;
create index forwards_rule on forwards (workspace_id, rule_id, created_at desc);

-- What an invoice is paid with, what gives it back, and what goes to and comes from exchanges.
alter table invoice_payments drop constraint invoice_payments_pkey;
drop index invoice_payments_invoice;
create index invoice_payments_invoice on invoice_payments (workspace_id, invoice_id);
alter table invoice_refunds drop constraint invoice_refunds_pkey;
drop index invoice_refunds_invoice;
create index invoice_refunds_invoice on invoice_refunds (workspace_id, invoice_id);
drop index exchange_transfers_transaction;
create unique index exchange_transfers_transaction on exchange_transfers (workspace_id, transaction_id) where transaction_id is not null;

-- Primary keys are made after all other indexes: of those that cost the planner the same it takes
-- the youngest, and in a table that it has not counted yet all do. A look at one row by its id is
-- always by the primary key then (a test).
alter table wallets add primary key (workspace_id, id);
alter table wallet_addresses add primary key (workspace_id, id);
alter table wallet_status_changes add primary key (workspace_id, id);
alter table ledger_accounts add primary key (workspace_id, id);
alter table ledger_entries add primary key (workspace_id, id);
alter table ledger_postings add primary key (workspace_id, entry_id, account_id);
alter table transactions add primary key (workspace_id, id);
alter table transaction_states add primary key (workspace_id, id);
alter table idempotency add primary key (workspace_id, wallet_id, sequence_id);
alter table replacements add primary key (workspace_id, id);
alter table chain_transactions add primary key (workspace_id, id);
alter table deposits add primary key (workspace_id, transaction_id);
alter table utxos add primary key (workspace_id, network, txid, vout);
alter table aml_settings add primary key (workspace_id, sub_account_id);
alter table frozen_addresses add primary key (workspace_id, id);
alter table aml_holds add primary key (workspace_id, transaction_id, freeze_id);
alter table aml_screenings add primary key (workspace_id, id);
alter table cooldowns add primary key (workspace_id, transaction_id);
alter table fuel_parts add primary key (workspace_id, fuel_id, transaction_id);
alter table forward_rules add primary key (workspace_id, id);
alter table forward_deposits add primary key (workspace_id, rule_id, transaction_id, generation);
alter table forwards add primary key (workspace_id, transaction_id);
alter table invoice_payments add primary key (workspace_id, transaction_id);
alter table invoice_refunds add primary key (workspace_id, transaction_id);

-- Who names a row names its workspace.
alter table chain_addresses
  add constraint chain_addresses_owner foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table wallets
  add constraint wallets_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table wallet_addresses
  add constraint wallet_addresses_wallet foreign key (workspace_id, wallet_id) references wallets,
  add constraint wallet_addresses_address foreign key (workspace_id, network, address)
    references chain_addresses (workspace_id, network, address);
alter table wallet_status_changes
  add constraint wallet_status_changes_of foreign key (workspace_id, wallet_id) references wallets;
alter table ledger_accounts add constraint ledger_accounts_wallet foreign key (workspace_id, wallet_id) references wallets;
alter table ledger_postings
  add constraint ledger_postings_entry foreign key (workspace_id, entry_id) references ledger_entries,
  add constraint ledger_postings_of foreign key (workspace_id, account_id) references ledger_accounts;
alter table transactions
  add constraint transactions_wallet foreign key (workspace_id, wallet_id) references wallets,
  add constraint transactions_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id),
  add constraint transactions_of foreign key (workspace_id, parent_id) references transactions;
alter table idempotency add constraint idempotency_wallet foreign key (workspace_id, wallet_id) references wallets;
alter table replacements add constraint replacements_of foreign key (workspace_id, transaction_id) references transactions;
alter table chain_transactions
  add constraint chain_transactions_of foreign key (workspace_id, transaction_id) references transactions,
  add constraint chain_transactions_replacement foreign key (workspace_id, replacement_id) references replacements,
  add constraint chain_transactions_replaces foreign key (workspace_id, replaces) references chain_transactions;
alter table deposits
  add constraint deposits_of foreign key (workspace_id, transaction_id) references transactions,
  add constraint deposits_address foreign key (workspace_id, network, address) references chain_addresses (workspace_id, network, address);
alter table utxos
  add constraint utxos_of foreign key (workspace_id, wallet_id) references wallets,
  add constraint utxos_spender foreign key (workspace_id, spent_by) references chain_transactions;
alter table aml_settings
  add constraint aml_settings_of foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table frozen_addresses
  add constraint frozen_addresses_by foreign key (workspace_id, transaction_id) references transactions,
  add constraint frozen_addresses_of foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table aml_holds
  add constraint aml_holds_of foreign key (workspace_id, transaction_id) references transactions,
  add constraint aml_holds_by foreign key (workspace_id, freeze_id) references frozen_addresses;
alter table aml_screenings add constraint aml_screenings_of foreign key (workspace_id, transaction_id) references transactions;
alter table cooldowns
  add constraint cooldowns_of foreign key (workspace_id, transaction_id) references transactions,
  add constraint cooldowns_wallet foreign key (workspace_id, wallet_id) references wallets,
  add constraint cooldowns_releasing foreign key (workspace_id, releasing_by) references transactions,
  add constraint cooldowns_released foreign key (workspace_id, released_by) references transactions;
alter table fuel_parts
  add constraint fuel_parts_fuel foreign key (workspace_id, fuel_id) references transactions,
  add constraint fuel_parts_of foreign key (workspace_id, transaction_id) references transactions;
alter table forward_rules
  add constraint forward_rules_wallet foreign key (workspace_id, wallet_id) references wallets,
  add constraint forward_rules_of foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table forward_deposits
  add constraint forward_deposits_rule foreign key (workspace_id, rule_id) references forward_rules,
  add constraint forward_deposits_of foreign key (workspace_id, transaction_id) references transactions;
alter table forwards
  add constraint forwards_rule_of foreign key (workspace_id, rule_id) references forward_rules,
  add constraint forwards_of foreign key (workspace_id, transaction_id) references transactions;
alter table invoice_payments
  add constraint invoice_payments_of foreign key (workspace_id, transaction_id) references transactions;
alter table invoice_refunds add constraint invoice_refunds_of foreign key (workspace_id, transaction_id) references transactions;
alter table invoice_offers add constraint invoice_offers_wallet foreign key (workspace_id, wallet_id) references wallets;
alter table exchange_transfers
  add constraint exchange_transfers_of foreign key (workspace_id, transaction_id) references transactions;

-- Rows say their workspace, so that keys can begin with it (026_workspace_keys.sql): what has it
-- from its parent until now gets a column of its own, filled in from there. Nothing fills it in
-- later: who writes a row names its workspace.

-- Sorting and joining many rows at once, until this is committed.
set local maintenance_work_mem = '256MB';
set local work_mem = '128MB';

-- Recreates the references between these tables, whatever their names are.
do $$
declare
  reference record;
  keyed regclass[] := array['wallets', 'chain_addresses', 'ledger_accounts', 'ledger_entries', 'transactions', 'replacements',
    'chain_transactions', 'frozen_addresses', 'forward_rules'];
begin
  for reference in select conrelid::regclass as of_table, conname from pg_constraint where contype = 'f' and (confrelid = any(keyed)
    or confrelid = 'sub_accounts'::regclass and conrelid = any(keyed || array['aml_settings']::regclass[])) loop
    execute format('alter table %s drop constraint %I', reference.of_table, reference.conname);
  end loop;
end $$;

-- Rows are written without the constraints that 026_workspace_keys.sql recreates anyway.
alter table transaction_states drop constraint transaction_states_pkey;
alter table ledger_postings drop constraint ledger_postings_pkey;
alter table idempotency drop constraint idempotency_pkey;
alter table deposits drop constraint deposits_pkey;
drop index transaction_states_transaction;
drop index ledger_postings_account;
drop index deposits_place;
drop index chain_transactions_account, chain_transactions_unsigned;
alter table ledger_entries drop constraint ledger_entries_pkey, drop constraint ledger_entries_kind_reference_key;
alter table chain_transactions drop constraint chain_transactions_pkey, drop constraint chain_transactions_transaction_id_attempt_key;

alter table wallet_addresses add column workspace_id uuid;
update wallet_addresses a set workspace_id = w.workspace_id from wallets w where w.id = a.wallet_id;
alter table wallet_addresses alter column workspace_id set not null;

-- Rows are only ever added; this once they are told what they were.
alter table wallet_status_changes add column workspace_id uuid;
alter table wallet_status_changes disable trigger user;
update wallet_status_changes c set workspace_id = w.workspace_id from wallets w where w.id = c.wallet_id;
alter table wallet_status_changes enable trigger user;
alter table wallet_status_changes alter column workspace_id set not null;

alter table ledger_postings add column workspace_id uuid;
update ledger_postings p set workspace_id = a.workspace_id from ledger_accounts a where a.id = p.account_id;
alter table ledger_postings alter column workspace_id set not null;

-- An entry is its postings'. One that moved nothing has none: it is of what its reference names,
-- and one that names nothing which is there says nothing.
alter table ledger_entries add column workspace_id uuid;
update ledger_entries e set workspace_id = p.workspace_id
  from (select distinct on (entry_id) entry_id, workspace_id from ledger_postings order by entry_id) p where p.entry_id = e.id;
update ledger_entries e set workspace_id = o.workspace_id from (
    select id::text id, workspace_id from transactions
    union all select c.id::text, t.workspace_id from chain_transactions c join transactions t on t.id = c.transaction_id
    union all select r.id::text, t.workspace_id from replacements r join transactions t on t.id = r.transaction_id
    union all select id::text, workspace_id from orders
    union all select id::text, workspace_id from exchange_accounts
    union all select id::text, workspace_id from exchange_transfers) o
  where e.workspace_id is null and o.id = substring(e.reference from '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}');
delete from ledger_entries where workspace_id is null;
alter table ledger_entries alter column workspace_id set not null;

alter table transaction_states add column workspace_id uuid;
update transaction_states s set workspace_id = t.workspace_id from transactions t where t.id = s.transaction_id;
alter table transaction_states alter column workspace_id set not null;

alter table idempotency add column workspace_id uuid;
update idempotency i set workspace_id = w.workspace_id from wallets w where w.id = i.wallet_id;
alter table idempotency alter column workspace_id set not null;

alter table replacements add column workspace_id uuid;
update replacements r set workspace_id = t.workspace_id from transactions t where t.id = r.transaction_id;
alter table replacements alter column workspace_id set not null;

alter table chain_transactions add column workspace_id uuid;
update chain_transactions c set workspace_id = t.workspace_id from transactions t where t.id = c.transaction_id;
alter table chain_transactions alter column workspace_id set not null;

alter table deposits add column workspace_id uuid;
update deposits d set workspace_id = t.workspace_id from transactions t where t.id = d.transaction_id;
alter table deposits alter column workspace_id set not null;

alter table utxos add column workspace_id uuid;
update utxos u set workspace_id = w.workspace_id from wallets w where w.id = u.wallet_id;
alter table utxos alter column workspace_id set not null;

alter table aml_settings add column workspace_id uuid;
update aml_settings a set workspace_id = s.workspace_id from sub_accounts s where s.id = a.sub_account_id;
alter table aml_settings alter column workspace_id set not null;

alter table aml_holds add column workspace_id uuid;
update aml_holds h set workspace_id = t.workspace_id from transactions t where t.id = h.transaction_id;
alter table aml_holds alter column workspace_id set not null;

alter table aml_screenings add column workspace_id uuid;
update aml_screenings s set workspace_id = t.workspace_id from transactions t where t.id = s.transaction_id;
alter table aml_screenings alter column workspace_id set not null;

alter table cooldowns add column workspace_id uuid;
update cooldowns c set workspace_id = t.workspace_id from transactions t where t.id = c.transaction_id;
alter table cooldowns alter column workspace_id set not null;

alter table fuel_parts add column workspace_id uuid;
update fuel_parts p set workspace_id = t.workspace_id from transactions t where t.id = p.transaction_id;
alter table fuel_parts alter column workspace_id set not null;

alter table forwards add column workspace_id uuid;
update forwards f set workspace_id = t.workspace_id from transactions t where t.id = f.transaction_id;
alter table forwards alter column workspace_id set not null;

alter table forward_deposits add column workspace_id uuid;
update forward_deposits d set workspace_id = t.workspace_id from transactions t where t.id = d.transaction_id;
alter table forward_deposits alter column workspace_id set not null;

alter table invoice_payments add column workspace_id uuid;
update invoice_payments p set workspace_id = t.workspace_id from transactions t where t.id = p.transaction_id;
alter table invoice_payments alter column workspace_id set not null;

alter table invoice_refunds add column workspace_id uuid;
update invoice_refunds r set workspace_id = t.workspace_id from transactions t where t.id = r.transaction_id;
alter table invoice_refunds alter column workspace_id set not null;

alter table invoice_offers add column workspace_id uuid;
update invoice_offers o set workspace_id = i.workspace_id from invoices i where i.id = o.invoice_id;
alter table invoice_offers alter column workspace_id set not null;

alter table invoice_mempool add column workspace_id uuid;
update invoice_mempool m set workspace_id = i.workspace_id from invoices i where i.id = m.invoice_id;
alter table invoice_mempool alter column workspace_id set not null;

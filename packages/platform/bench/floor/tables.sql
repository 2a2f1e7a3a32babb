-- The floor's own tables: each has the columns, defaults, indexes and foreign keys of the platform's, so that a row costs what it
-- costs there.
drop schema if exists floor cascade;
create schema floor;
create table floor.request_nonces (like public.request_nonces including all);
create table floor.rate_windows (like public.rate_windows including all);
create table floor.wallets (like public.wallets including all);
create table floor.idempotency (like public.idempotency including all);
create table floor.transactions (like public.transactions including all);
create table floor.transaction_states (like public.transaction_states including all);
create table floor.events (like public.events including all);
create table floor.ledger_accounts (like public.ledger_accounts including all);
create table floor.ledger_entries (like public.ledger_entries including all);
create table floor.ledger_postings (like public.ledger_postings including all);

do $$
declare
  fk record;
begin
  for fk in
    select c.relname, replace(pg_get_constraintdef(f.oid), 'REFERENCES ', 'REFERENCES '
        || case when exists (select 1 from pg_class t where t.relnamespace = 'floor'::regnamespace and t.relname = r.relname)
           then 'floor.' else 'public.' end) definition
    from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_class r on r.oid = f.confrelid
    where f.contype = 'f' and c.relnamespace = 'public'::regnamespace
      and exists (select 1 from pg_class t where t.relnamespace = 'floor'::regnamespace and t.relname = c.relname)
  loop
    execute format('alter table floor.%I add %s', fk.relname, fk.definition);
  end loop;
end $$;

create function floor.admit(p_api_key uuid, p_nonce text, p_window timestamptz, p_limit integer, p_now timestamptz) returns boolean
language plpgsql as $$
declare
  counted integer;
begin
  insert into floor.rate_windows as w (subject, window_start, requests) values (p_api_key::text, p_window, 1)
    on conflict (subject, window_start) do update set requests = w.requests + 1 returning w.requests into counted;
  if counted > p_limit then return false; end if;
  insert into floor.request_nonces (api_key, nonce, expires_at) values (p_api_key, p_nonce, p_now + interval '10 minutes')
    on conflict do nothing;
  return found;
end $$;

-- The rows of one transfer: its first answer, itself, its state, what is held back of the wallet and of the prepaid account, its
-- event. The four accounts are given; the first is what it can spend.
create function floor.transfer(
  p_id uuid, p_workspace uuid, p_sub_account uuid, p_wallet uuid, p_sequence text, p_hash text, p_response text, p_amount numeric,
  p_destination text, p_request jsonb, p_fee numeric, p_available bigint, p_reserved bigint, p_prepaid bigint, p_prepaid_reserved bigint,
  p_now timestamptz) returns boolean
language plpgsql as $$
declare
  entry bigint;
begin
  insert into floor.idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash, response)
    values (p_workspace, p_wallet, p_sequence, p_id, p_hash, p_response) on conflict do nothing;
  if not found then return false; end if;
  update floor.ledger_accounts set balance = balance - p_amount where workspace_id = p_workspace and id = p_available and balance >= p_amount;
  if not found then return false; end if;
  update floor.ledger_accounts set balance = balance + p_amount where workspace_id = p_workspace and id = p_reserved;
  insert into floor.ledger_entries (workspace_id, kind, reference) values (p_workspace, 'reserve', p_id::text) returning id into entry;
  insert into floor.ledger_postings (workspace_id, entry_id, account_id, amount)
    values (p_workspace, entry, p_available, -p_amount), (p_workspace, entry, p_reserved, p_amount);
  insert into floor.transactions (
      id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee, fee_asset, amount_usd, platform_fee, source_type,
      source_id, destination_type, destination_id, sequence_id, state, status, request, created_at, updated_at, next_run_at)
    values (
      p_id, 'WITHDRAWAL', p_workspace, p_sub_account, p_wallet, 'ETH', 'ETH', p_amount, 0, 'ETH', 1000000, p_fee, 'INTERNAL',
      p_destination, 'EXTERNAL', p_destination, p_sequence, 'CREATED', 'pending', p_request, p_now, p_now, p_now);
  insert into floor.transaction_states (workspace_id, transaction_id, state, at) values (p_workspace, p_id, 'CREATED', p_now);
  insert into floor.events (workspace_id, sub_account_id, type, payload)
    values (p_workspace, p_sub_account, 'transaction.created', p_response::jsonb);
  update floor.ledger_accounts set balance = balance - p_fee where workspace_id = p_workspace and id = p_prepaid and balance >= p_fee;
  update floor.ledger_accounts set balance = balance + p_fee where workspace_id = p_workspace and id = p_prepaid_reserved;
  insert into floor.ledger_entries (workspace_id, kind, reference) values (p_workspace, 'prepaid-reserve', p_id::text) returning id into entry;
  insert into floor.ledger_postings (workspace_id, entry_id, account_id, amount)
    values (p_workspace, entry, p_prepaid, -p_fee), (p_workspace, entry, p_prepaid_reserved, p_fee);
  return true;
end $$;

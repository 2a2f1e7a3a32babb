-- Double entry. Every entry sums to zero per asset, checked at commit; an entry is posted once per (kind, reference).
-- Accounts: available, reserved, unswept (by address) of a wallet; tank, tank_reserved, float and float_reserved
-- (by address), suspense (by address), prepaid of a workspace; chain: the outside world, the negative of all we hold.

create table ledger_accounts (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  wallet_id uuid references wallets,
  asset text not null,
  kind text not null check (kind in ('available', 'reserved', 'unswept', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense', 'prepaid', 'prepaid_reserved', 'fees', 'chain')),
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

create function ledger_account(p_workspace uuid, p_wallet uuid, p_asset text, p_kind text, p_address text) returns bigint
language plpgsql as $$
declare
  found_id bigint;
begin
  select id into found_id from ledger_accounts
    where workspace_id = p_workspace and wallet_id is not distinct from p_wallet and asset = p_asset and kind = p_kind
      and address is not distinct from p_address;
  if found_id is null then
    insert into ledger_accounts (workspace_id, wallet_id, asset, kind, address) values (p_workspace, p_wallet, p_asset, p_kind, p_address)
      on conflict do nothing returning id into found_id;
    if found_id is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is not distinct from p_wallet and asset = p_asset and kind = p_kind
          and address is not distinct from p_address;
    end if;
  end if;
  return found_id;
end $$;

-- p_postings: [{"workspace","wallet","asset","kind","address","amount"}]; amounts as text. Returns false when this
-- (kind, reference) was posted before. p_overdraw lets balances go below zero (reorganisations only).
create function ledger_post(p_kind text, p_reference text, p_postings jsonb, p_overdraw boolean default false) returns boolean
language plpgsql as $$
declare
  entry bigint;
  posting record;
begin
  insert into ledger_entries (kind, reference) values (p_kind, p_reference) on conflict do nothing returning id into entry;
  if entry is null then return false; end if;
  if exists (
    select 1 from jsonb_to_recordset(p_postings) as p(asset text, amount numeric) group by p.asset having sum(p.amount) <> 0
  ) then
    raise exception 'ledger entry % % does not balance', p_kind, p_reference;
  end if;
  -- Accounts are always locked in the order of their ids, so that two entries cannot wait for each other.
  for posting in
    select ledger_account(p.workspace, p.wallet, p.asset, p.kind, p.address) as account, sum(p.amount) as amount
    from jsonb_to_recordset(p_postings) as p(workspace uuid, wallet uuid, asset text, kind text, address text, amount numeric)
    group by 1 order by 1
  loop
    if posting.amount <> 0 then
      insert into ledger_postings (entry_id, account_id, amount) values (entry, posting.account, posting.amount);
      update ledger_accounts
        set balance = balance + posting.amount,
            overdrawn = (overdrawn or p_overdraw) and balance + posting.amount < 0
        where id = posting.account;
    end if;
  end loop;
  return true;
end $$;

-- What the operator made of a wallet, and when. Rows are only ever added.
create table wallet_status_changes (
  id bigint generated always as identity primary key,
  wallet_id uuid not null references wallets,
  status text not null check (status in ('active', 'inactive')),
  reason text,
  changed_at timestamptz not null
);
create index wallet_status_changes_wallet on wallet_status_changes (wallet_id, id);

create function only_added() returns trigger
language plpgsql as $$
begin
  raise exception 'rows of % are only added', tg_table_name;
end $$;
create trigger wallet_status_changes_kept before update or delete on wallet_status_changes for each row execute function only_added();

-- A wallet's omnibus address is listed from the start; the first POST /address hands it out.
alter table wallet_addresses add column handed_out boolean not null default true;
insert into wallet_addresses (wallet_id, network, address, handed_out, created_at)
  select w.id, c.network, c.address, false, w.created_at
  from wallets w join chain_addresses c on c.network = w.network and c.sub_account_id = w.sub_account_id and c.kind = 'omnibus'
  where not exists (select 1 from wallet_addresses a where a.wallet_id = w.id and a.address = c.address and a.address_tag is null);

-- GET /dac/v1/transactions?sequence_id=
create index transactions_sequence on transactions (sub_account_id, sequence_id) where sequence_id is not null;

-- What failed before it reached a chain cost nothing, and its platform fee went back: its row says
-- so from now on.
update transactions set fee = 0 where status = 'failed' and state = 'FAILED' and kind in ('WITHDRAWAL', 'SWEEP');
update transactions t set plan = t.plan || '{"refunded":"1"}', fee = case when t.state = 'CANCELLED' then 0 else t.fee end
  from ledger_entries e where e.kind = 'prepaid-refund' and e.reference = t.id::text and t.status = 'failed';

-- Opens the way of a transfer to an exchange, in the commit that makes the transfer: `p` holds the
-- columns by name.
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

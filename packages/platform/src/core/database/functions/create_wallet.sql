-- Makes a wallet, the addresses that belong to it, its network's gas tank and its event, in one
-- call. "addresses": [{"address", "sub_account", "path_index", "kind"}], each once per network, the
-- first the wallet's omnibus address; "tank": {"address", "threshold", "first_fill"} or null;
-- "shown": what the event tells. Answers null, or the id of the wallet that there is already.
-- Raises CU008 where deposits wait for the wallet: nothing is written then. Not if "credits" is
-- true: the caller credits them in the same transaction.
create or replace function create_wallet(p jsonb) returns uuid
language plpgsql as $$
declare
  workspace uuid := (p->>'workspace_id')::uuid;
  owner uuid := (p->>'sub_account_id')::uuid;
begin
  insert into wallets (id, workspace_id, sub_account_id, asset, network, created_at)
    values ((p->>'id')::uuid, workspace, owner, p->>'asset', p->>'network', (p->>'created_at')::timestamptz) on conflict do nothing;
  if not found then
    return (select id from wallets where workspace_id = workspace and sub_account_id = owner and asset = p->>'asset');
  end if;
  insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
    select p->>'network', a.address, workspace, a.sub_account, a.path_index, a.kind
    from jsonb_to_recordset(p->'addresses') a(address text, sub_account uuid, path_index integer, kind text)
    on conflict do nothing;
  insert into wallet_addresses (workspace_id, wallet_id, network, address, handed_out)
    values (workspace, (p->>'id')::uuid, p->>'network', p#>>'{addresses,0,address}', false) on conflict do nothing;
  if not (p->>'credits')::boolean then
    perform 1 from transactions
      where kind = 'DEPOSIT' and workspace_id = workspace and sub_account_id = owner and asset = p->>'asset' and wallet_id is null
        and address_tag is null limit 1;
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

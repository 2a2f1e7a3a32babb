-- Posts one movement of the account. False: this (kind, reference) was posted before.
create or replace function prepaid_move(p_workspace uuid, p_kind text, p_reference text, p_from text, p_to text, p_amount numeric)
returns boolean
language sql as $$
  select ledger_post(p_workspace, p_kind, p_reference, jsonb_build_array(
    jsonb_build_object('asset', 'USD', 'kind', p_from, 'amount', (-p_amount)::text),
    jsonb_build_object('asset', 'USD', 'kind', p_to, 'amount', p_amount::text)))
$$;

-- Tells, once until the next top-up, that the balance has fallen: to a fifth, to a twentieth, below
-- the least fee.
create or replace function prepaid_tell(p_account prepaid_accounts, p_balance numeric, p_least numeric) returns void
language plpgsql as $$
declare
  stage smallint := case
    when p_balance <= 0 or p_balance < p_least then 3
    when p_balance * 20 <= p_account.level then 2
    when p_balance * 5 <= p_account.level then 1
    else 0 end;
begin
  if stage <= p_account.told then return; end if;
  update prepaid_accounts set told = stage where workspace_id = p_account.workspace_id;
  perform emit_event(p_account.workspace_id, null,
    case when stage = 3 then 'prepaid_fee.empty' else 'prepaid_fee.low' end, jsonb_build_object(
    'balance', trim_scale(p_balance / 1000000), 'currency', 'USD',
    'percent', case stage when 1 then 20 when 2 then 5 else 0 end, 'topped_up_to', trim_scale(p_account.level / 1000000)));
end $$;

-- Ends the reservation of an order's platform fee, once: so much of it is taken, the rest is given
-- back.
create or replace function order_fee_settle(p_workspace uuid, p_order uuid, p_charged numeric, p_volume numeric, p_day date) returns void
language plpgsql as $$
declare
  ended orders%rowtype;
  reference text := 'order:' || p_order;
begin
  select * into ended from orders where workspace_id = p_workspace and id = p_order;
  perform prepaid_lock(ended.workspace_id);
  if p_charged > 0 and prepaid_move(ended.workspace_id, 'prepaid-charge', reference, 'prepaid_reserved', 'fees', p_charged) then
    insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (ended.workspace_id, p_day, p_volume)
      on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  end if;
  if ended.platform_fee > p_charged and prepaid_move(
    ended.workspace_id, 'prepaid-refund', reference, 'prepaid_reserved', 'prepaid', ended.platform_fee - p_charged) then
    update prepaid_accounts set told = 2 where workspace_id = ended.workspace_id and told = 3;
  end if;
end $$;

-- Links a transfer with the invoice whose payments it gives back. Raises CU004 where more of its
-- asset would be given back than has been credited; what failed gave nothing back. Raises CU005
-- while the invoice is open: what is given back would still pay it.
create or replace function invoice_refund(p_workspace uuid, p_invoice text, p_transaction uuid) returns void
language plpgsql as $$
declare
  refund transactions%rowtype;
  paid numeric;
  given numeric;
begin
  perform 1 from invoices where workspace_id = p_workspace and id = p_invoice for update;
  perform 1 from invoices where workspace_id = p_workspace and id = p_invoice and status in ('Pending', 'Processing');
  if found then raise exception 'open' using errcode = 'CU005'; end if;
  select * into refund from transactions where workspace_id = p_workspace and id = p_transaction;
  select coalesce(sum(amount), 0) into paid from invoice_payments
    where workspace_id = p_workspace and invoice_id = p_invoice and asset = refund.asset and status = 'confirmed';
  select coalesce(sum(t.amount), 0) into given from invoice_refunds r
    join transactions t on t.workspace_id = r.workspace_id and t.id = r.transaction_id
    where r.workspace_id = p_workspace and r.invoice_id = p_invoice and t.asset = refund.asset and t.status <> 'failed';
  if given + refund.amount > paid then
    raise exception 'refund' using errcode = 'CU004', detail = greatest(0, paid - given)::text;
  end if;
  insert into invoice_refunds (workspace_id, transaction_id, invoice_id) values (p_workspace, p_transaction, p_invoice);
end $$;

-- Forwarding rules that wait for approvals of people (custody/auto-forwarding). The column
-- transaction_id of approval_requests contains the public ID of the transfer or of the rule.
alter table forward_rules
  -- APPROVAL: the policy requires approvals that are missing.
  drop constraint forward_rules_state_check,
  add constraint forward_rules_state_check check (
    state in ('PENDING', 'ACTIVE', 'PAUSED', 'APPROVAL', 'EXPIRED', 'ENDING', 'ENDED')),
  -- Amount of the forward for which the approvals are required.
  add column approval_amount numeric(78, 0) check (approval_amount > 0),
  -- Why the platform ended the rule; null: its caller deleted it, or it was never created.
  add column end_reason text;
drop index forward_rules_one, forward_rules_expiring;
create unique index forward_rules_one on forward_rules (workspace_id, wallet_id)
  where state in ('PENDING', 'ACTIVE', 'PAUSED', 'APPROVAL');
create index forward_rules_expiring on forward_rules (expires_at)
  where state in ('ACTIVE', 'PAUSED', 'APPROVAL');
-- Rules of each workspace that are compared with its policy.
create index forward_rules_judged on forward_rules (workspace_id) where state = 'ACTIVE';

do $$
declare reference text;
begin
  select conname into strict reference from pg_constraint
  where conrelid = 'approval_requests'::regclass and confrelid = 'transactions'::regclass;
  execute format('alter table approval_requests drop constraint %I', reference);
end $$;
alter table approval_requests
  add column is_rule boolean not null default false,
  add column of_transaction uuid generated always as (case when is_rule then null else transaction_id end) stored,
  add column of_rule uuid generated always as (case when is_rule then transaction_id end) stored,
  add constraint approval_requests_transaction foreign key (workspace_id, of_transaction)
    references transactions (workspace_id, id),
  add constraint approval_requests_rule foreign key (workspace_id, of_rule)
    references forward_rules (workspace_id, id);
-- Rules that wait, for the alert about missing approvals.
create index approval_requests_rules on approval_requests (created_at) where is_rule and state = 'open';

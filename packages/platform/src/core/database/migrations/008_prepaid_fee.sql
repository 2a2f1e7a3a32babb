-- The prepaid fee account of a workspace: USD with six decimals in the ledger kinds prepaid,
-- prepaid_reserved and fees. Whatever changes it locks its row here first, and only after the rows
-- of wallets, so that nobody waits in a circle.

create table prepaid_accounts (
  workspace_id uuid primary key references workspaces,
  tier text not null default 'STARTER',
  -- UTC day for which the tier was last decided.
  decided_on date not null default (now() at time zone 'utc')::date,
  -- First day of the month for which a subscription was paid, and how much of it.
  paid_month date,
  paid numeric(78, 0) not null default 0 check (paid >= 0),
  -- Balance right after the last top-up: events tell when a fifth and a twentieth of it are left.
  level numeric(78, 0) not null default 0,
  -- What was told since: 0 nothing, 1 a fifth is left, 2 a twentieth, 3 empty.
  told smallint not null default 0 check (told between 0 and 3)
);
create index prepaid_accounts_turn on prepaid_accounts (decided_on);

-- USD value of what was charged for, by UTC day.
create table prepaid_volumes (
  workspace_id uuid not null references workspaces,
  day date not null,
  amount_usd numeric(78, 0) not null,
  primary key (workspace_id, day)
);

-- A gas tank on Tron may stake by the operator's order, and lend its energy to an address for one transaction.

alter table transactions drop constraint transactions_kind_check;
alter table transactions add constraint transactions_kind_check check (kind in ('WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN', 'STAKE', 'UNSTAKE', 'RELEASE', 'LEND', 'LEND_BACK'));

-- Null: a gas tank's.
alter table cooldowns alter column wallet_id drop not null;
drop index cooldowns_open;
create index cooldowns_open on cooldowns (network, account, release_at) where released_by is null;

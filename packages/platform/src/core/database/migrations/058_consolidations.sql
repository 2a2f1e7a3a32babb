-- A consolidation merges coins of a wallet by the caller's request (custody/coins).
alter table transactions drop constraint transactions_kind_check;
alter table transactions add constraint transactions_kind_check check (kind in (
  'WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN', 'STAKE', 'UNSTAKE', 'RELEASE', 'LEND',
  'LEND_BACK', 'CONSOLIDATION'));

-- written_off: what the operator has written off of a wallet that a reorganisation left below zero
-- (core/ledger/written-off.ts). Never above zero: other wallets are owed these coins.
alter table ledger_accounts drop constraint ledger_accounts_kind_check;
alter table ledger_accounts add constraint ledger_accounts_kind_check check (kind in (
  'available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense',
  'prepaid', 'prepaid_reserved', 'fees', 'chain',
  'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling',
  'venue', 'venue_outside', 'venue_fees', 'written_off'));
alter table ledger_accounts drop constraint ledger_not_negative;
alter table ledger_accounts add constraint ledger_not_negative check (
  balance >= 0 or overdrawn or kind in ('chain', 'fees', 'venue', 'venue_outside', 'venue_fees', 'written_off'));
alter table ledger_accounts add constraint ledger_written_off check (kind <> 'written_off' or balance <= 0);

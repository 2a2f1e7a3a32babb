-- A rehearsal on private chains: its mode contains the chain id of its EVM chain.
alter table installation drop constraint installation_network_check;
alter table installation add constraint installation_network_check
  check (network in ('local', 'mainnet') or network ~ '^regtest-[1-9][0-9]{0,14}$');

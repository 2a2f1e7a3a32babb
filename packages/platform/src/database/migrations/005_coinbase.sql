-- What a block pays its miner can be spent only many blocks later, and is credited then.
alter table deposits add column coinbase boolean not null default false;

-- What a forward counts against its rule's daily cap beside its amount: room for its network fee, where that is the same
-- coin and a gas tank pays it. The signer nodes count the fee itself.
alter table forwards add column fee_room numeric(78, 0) not null default 0;

-- Hashes of forwards that the signer nodes named as signed when their rule was ended.
alter table forward_rules add column end_hashes jsonb not null default '[]';

-- Screening asks when an address was last frozen, also where it is frozen no more.
create index frozen_addresses_key on frozen_addresses (sub_account_id, space, address_key);

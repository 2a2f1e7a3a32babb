-- Of an audit's differences, those where a chain holds more than the books: they harm no customer,
-- and anybody can cause them.
alter table audits add column if not exists surpluses integer not null default 0;

-- A deposit that only an endpoint's tracer reports (a contract paid it within a transaction): it is
-- credited once the balance of its address confirms it (custody/deposits/adopted.ts).
alter table deposits add column claimed boolean not null default false;

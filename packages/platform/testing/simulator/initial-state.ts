/**
 * Functions in the simulation's databases: `simulated.begin_again()` restores the state in which
 * this script was run, except for the space that rows have used. The schema is kept. The statistics
 * state that every table is nearly empty, and never change. A connection therefore has the same
 * plans at any time, and a seed has the same run whatever was run before it.
 */
export const INITIAL_STATE = `do $$
declare
  each record;
  filled boolean;
begin
  create table simulated.beginning_sequences as
    select format('%I.%I', schemaname, sequencename) "name", coalesce(last_value, start_value) at, last_value is not null used from pg_sequences;
  create table simulated.beginning_rows (name text primary key, kept text not null);
  for each in select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' loop
    execute format('select exists (select 1 from public.%I)', each.table_name) into filled;
    if filled then
      execute format('create table simulated.%I as select * from public.%I', 'beginning_' || each.table_name, each.table_name);
      insert into simulated.beginning_rows values (each.table_name, 'beginning_' || each.table_name);
    end if;
  end loop;
  update pg_class set relpages = case relkind when 'i' then 2 else 1 end, reltuples = 0
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'i');
  create function simulated.begin_again() returns void language plpgsql as $again$
  declare
    each record;
  begin
    set local session_replication_role = replica;
    for each in select table_name, r.kept from information_schema.tables t left join simulated.beginning_rows r on r.name = t.table_name
      where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name
    loop
      execute format('delete from public.%I', each.table_name);
      if each.kept is not null then
        execute format('insert into public.%I overriding system value select * from simulated.%I', each.table_name, each.kept);
      end if;
    end loop;
    perform setval(name::regclass, at, used) from simulated.beginning_sequences;
  end $again$;
end $$`

-- Adds up to `p_limit` changes of lists to their counts, and answers how many there were. Several
-- may fold at a time: each takes others, and all lock the counts in one order.
create or replace function fold_list_counts(p_limit integer) returns integer
language sql as $$
  with taken as (
    delete from list_deltas where id in (select id from list_deltas order by id limit p_limit for update skip locked)
    returning list, owner, bucket, dims, n
  ), changes as (
    select list, owner, l.level, l.bucket, dims, sum(n) n
    from taken cross join lateral (values
      (0::smallint, '-infinity'::timestamptz), (1::smallint, date_trunc('day', taken.bucket, 'UTC')), (2::smallint, taken.bucket)
    ) l (level, bucket)
    group by list, owner, l.level, l.bucket, dims having sum(n) <> 0
    order by list, owner, l.level, l.bucket, dims
  ), folded as (
    insert into list_counts as c (list, owner, level, bucket, dims, n) select list, owner, level, bucket, dims, n from changes
    on conflict (list, owner, level, bucket, dims) do update set n = c.n + excluded.n
  )
  select count(*)::integer from taken
$$;

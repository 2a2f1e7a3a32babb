-- Spends nonces and counts requests in one call, after their signatures were verified. The arrays
-- hold one request at each place. Answers (nonce_ok, requests in this window) in their order. A
-- limited request does not spend its nonce; of two with one nonce the first has it. Rows are locked
-- in one order, all windows before all nonces, so that no two calls wait for each other.
create or replace function admit_requests(
  p_api_keys uuid[], p_nonces text[], p_subjects text[], p_limits integer[], p_window timestamptz, p_now timestamptz)
returns table (nonce_ok boolean, requests integer)
language plpgsql as $$
begin
  return query
    with asked as (
      select a.*, row_number() over (partition by a.subject order by a.at desc) later
      from unnest(p_api_keys, p_nonces, p_subjects, p_limits) with ordinality a(api_key, nonce, subject, most, at)
    ), counted as (
      insert into rate_windows as w (subject, window_start, requests)
        select a.subject, p_window, count(*) from asked a group by a.subject order by a.subject
        on conflict (subject, window_start) do update set requests = w.requests + excluded.requests
        returning w.subject, w.requests
    ), placed as (
      select a.at, a.api_key, a.nonce, a.most, (c.requests - a.later + 1)::integer place from asked a join counted c using (subject)
    ), entitled as (
      select distinct on (p.api_key, p.nonce) p.at, p.api_key, p.nonce from placed p where p.place <= p.most
        order by p.api_key, p.nonce, p.at
    ), spent as (
      insert into request_nonces (api_key, nonce, expires_at)
        select e.api_key, e.nonce, p_now + interval '10 minutes' from entitled e order by e.api_key, e.nonce
        on conflict do nothing
        returning request_nonces.api_key, request_nonces.nonce
    )
    select p.place > p.most or (e.at is not null and s.nonce is not null), p.place
    from placed p
      left join entitled e using (at)
      left join spent s on s.api_key = e.api_key and s.nonce = e.nonce
    order by p.at;
end $$;

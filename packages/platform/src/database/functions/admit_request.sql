-- Spends a nonce and counts the request in one call, after the signature was verified.
-- Answers (nonce_ok, requests in this window). A limited request does not spend its nonce.
create or replace function admit_request(
  p_api_key uuid, p_nonce text, p_subject text, p_window timestamptz, p_limit integer, p_now timestamptz)
returns table (nonce_ok boolean, requests integer)
language plpgsql as $$
declare
  counted integer;
  spent integer;
begin
  insert into rate_windows as w (subject, window_start, requests) values (p_subject, p_window, 1)
    on conflict (subject, window_start) do update set requests = w.requests + 1
    returning w.requests into counted;
  if counted > p_limit then
    return query select true, counted;
    return;
  end if;
  insert into request_nonces (api_key, nonce, expires_at) values (p_api_key, p_nonce, p_now + interval '10 minutes')
    on conflict do nothing;
  get diagnostics spent = row_count;
  return query select spent = 1, counted;
end $$;

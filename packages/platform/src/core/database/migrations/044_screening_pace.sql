-- Next free slot of each screening account (custody/aml/providers/pace.ts), so that all processes
-- together keep the provider's rate limit. The key is a hash of provider and token.
create table aml_pace (
  key text primary key,
  next_at timestamptz not null
);

-- Highest level of exposure that was found and does not decide, such as small amounts from a
-- flagged counterparty.
alter table aml_screenings add column alert_level text;
-- Recent responses about an address, which other transactions may use.
create index aml_screenings_address on aml_screenings (workspace_id, provider, address_key, screened_at);

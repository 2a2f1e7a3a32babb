-- Deposits of less value than this, in millionths of a USD, are credited although not all of their senders
-- are known to screening; 0: none.
alter table aml_settings add column unknown_sender_usd numeric(30, 0) not null default 0
  check (unknown_sender_usd >= 0);

-- Numbers of an account follow from its chain transactions: nobody has read this since.
alter table signing_accounts drop column if exists next_nonce;

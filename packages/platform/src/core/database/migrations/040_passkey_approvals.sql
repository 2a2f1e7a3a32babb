-- Decisions by passkeys (custody/approvals): the assertion takes the place of the signature.
alter table approvals alter column signature drop not null;
alter table approvals add column passkey jsonb;
alter table approvals add constraint approvals_proof check (num_nonnulls(signature, passkey) = 1);

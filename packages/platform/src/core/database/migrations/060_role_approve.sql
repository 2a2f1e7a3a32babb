-- API keys with which people approve: they read, propose policy changes, and cannot pay.
alter table api_users drop constraint api_users_role_check,
  add constraint api_users_role_check check (role in ('full', 'approve', 'read-only'));
alter table api_user_requests drop constraint api_user_requests_role_check,
  add constraint api_user_requests_role_check check (role in ('full', 'approve', 'read-only'));

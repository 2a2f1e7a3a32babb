-- Audits that were made: a watcher that sees no recent one knows that nobody looked.
create table if not exists audits (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  took_ms integer not null,
  compared integer not null,
  differences integer not null,
  ok boolean not null
);
create index if not exists audits_at on audits (at desc, id desc);

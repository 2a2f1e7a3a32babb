-- Memos are found whole and by their beginning (transactions/list-transactions.ts). A memo of 1,000
-- characters has up to 4,000 bytes and an index row at most 2,704, so the index holds the first 100
-- characters. text_pattern_ops orders by bytes, whatever the locale is, and needs no extension.
create index transactions_memo_begins on transactions (
  workspace_id, sub_account_id, lower(left(memo, 100)) text_pattern_ops, created_at desc, id desc) where memo is not null;
drop index transactions_memo;

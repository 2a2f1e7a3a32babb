-- A list of withdrawals of one wallet in one commit, each as create_withdrawal writes it. Answers,
-- in their order, what that answers, or {"code", "message", "detail"} where it raised something:
-- then nothing of that one is written, and the others are. What is ended for somebody else's sake
-- ends as a whole, and is tried again as a whole.
create or replace function create_withdrawals(p jsonb) returns jsonb
language plpgsql as $$
declare
  answers jsonb[] := array_fill(null::jsonb, array[jsonb_array_length(p)]);
  item record;
  told_code text;
  told_message text;
  told_detail text;
begin
  -- In one order, so that two calls with the same sequence_ids do not wait for each other.
  for item in select w.value, w.at from jsonb_array_elements(p) with ordinality w(value, at) order by w.value->>'sequence_id', w.at loop
    begin
      answers[item.at] := create_withdrawal(item.value);
    exception when deadlock_detected or serialization_failure then raise;
    when others then
      get stacked diagnostics told_code = returned_sqlstate, told_message = message_text, told_detail = pg_exception_detail;
      answers[item.at] := jsonb_build_object('code', told_code, 'message', told_message, 'detail', told_detail);
    end;
  end loop;
  return to_jsonb(answers);
end $$;

import { createKinds } from '../../src/server/app/kinds.ts'
import { partialApplication } from '../partial-application.ts'
import { WATCH_CODE } from './ledger-watch.ts'

/** Every change of state that the kinds' tables allow, as a row of a SQL list. */
const CHANGES = Object.entries(createKinds(partialApplication({}))).flatMap(([kind, { states }]) =>
  states.flatMap(({ state, next }) => next.map((to) => `('${kind}', '${state}', '${to}')`)),
)

/**
 * Trigger for the simulation's databases. It refuses a change of a transaction's state that the
 * table of its kind does not contain.
 */
export const STATE_WATCH = `do $$ begin
create function simulated.state_follows() returns trigger language plpgsql as $watch$
begin
  if (new.kind, old.state, new.state) not in (${CHANGES.join(', ')}) then
    raise exception using errcode = '${WATCH_CODE}',
      message = format('the table of %s does not allow %s after %s', new.kind, new.state, old.state);
  end if;
  return new;
end $watch$;
create trigger state_follows before update of state on public.transactions
  for each row when (old.state is distinct from new.state) execute function simulated.state_follows();
end $$`

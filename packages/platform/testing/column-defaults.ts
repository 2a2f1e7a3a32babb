/** Functions that PostgreSQL evaluates in column defaults. */
type DefaultFunction = 'now' | 'gen_random_uuid'

/**
 * Returns a statement that replaces calls of the given functions in all column defaults of the
 * public schema.
 * @param expressions the new default expression for each function
 */
export function replaceColumnDefaults(
  expressions: Partial<Record<DefaultFunction, string>>,
): string {
  const replacements = Object.entries(expressions).map(
    ([name, expression]) => `('${name}()', '${expression}')`,
  )
  return `do $$
declare
  each record;
begin
  for each in select c.table_name, c.column_name, replace(c.column_default, r.call, r.expression) expression
    from information_schema.columns c join (values ${replacements.join(', ')}) r (call, expression) on strpos(c.column_default, r.call) > 0
    where c.table_schema = 'public'
  loop
    execute format('alter table public.%I alter column %I set default %s', each.table_name, each.column_name, each.expression);
  end loop;
end $$`
}

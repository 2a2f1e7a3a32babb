import { EVENT_TYPES } from './event-types.ts'
import type { Queryable } from './pool.ts'

/** States from the built plan to the chain's result, which every signed kind of transaction has. */
const SIGNED = [
  'QUEUED',
  'SIGNING',
  'SIGNED',
  'BROADCASTING',
  'CONFIRMING',
  'CONFIRMED',
  'REVERTED',
  'FAILED',
] as const
const GAS = [
  'gas',
  'max_fee_per_gas',
  'max_priority_fee_per_gas',
  'l1_fee',
  'legacy',
  'need',
] as const
const POINTS = [
  'fee_limit',
  'energy_counted',
  'bandwidth_counted',
  'energy_spared',
  'bandwidth_spared',
] as const
/**
 * Amounts that were taken from the gas tank for the transaction. `fuellings`: how often they were
 * returned because the policy did not allow them; absent: never.
 */
const FUELLED = ['fuel_id', 'float_taken', 'loan_id', 'fuellings'] as const
/** Another wallet of the sub-account that pays the fee. */
const OTHER_WALLET = ['fee_wallet', 'fee_held'] as const
/**
 * Earlier versions wrote this field into adopted tank transactions; unfinished ones must remain
 * valid after an upgrade.
 */
const ONCE_WRITTEN = ['back_fee'] as const
/**
 * Plan fields about the origin of a transaction. `earlier`: an attempt that nodes had begun to
 * sign. `adopted`: found in the nodes' records. `generation`: how often reorganisations have taken
 * back what a block settled of it; absent: never.
 */
const LIFE = ['earlier', 'adopted', 'generation'] as const
const STAKING_STATES = [...SIGNED, 'APPROVAL', 'FUELING', 'VOIDING', 'PARTIAL'] as const
const STAKING = [
  ...FUELLED,
  ...LIFE,
  ...ONCE_WRITTEN,
  ...POINTS,
  'need',
  'resource',
  'step',
  'fees_paid',
  'delay_days',
  'expected_at',
  'order',
  'reserved_fee',
  'adopted_steps',
  'reason',
  'approval_from',
  'fee_judged',
  'refunded',
] as const
const LENDING = [
  ...LIFE,
  'fee_limit',
  'need',
  'resource',
  'reserved_fee',
  'back_fee',
  'settled',
  'ended',
  'loan_id',
  'step',
  'fees_paid',
  'delay_days',
  'adopted_steps',
  'order',
] as const
const SCREENED = ['screening_since', 'screening_alerted'] as const

/**
 * States of each kind of transaction, and the permitted fields of its plan: amounts as decimal
 * strings in the smallest unit, flags as '1'. The types of {@link ../engine/transaction.ts} and the
 * table's check are derived from this.
 */
export const STATE_SCHEMAS = {
  WITHDRAWAL: {
    states: [
      ...SIGNED,
      'CREATED',
      'SCREENING',
      'AML_HELD',
      'APPROVAL',
      'FUELING',
      'REPLACING',
      'VOIDING',
      'CANCELLED',
    ],
    plan: [
      ...GAS,
      ...POINTS,
      ...FUELLED,
      ...OTHER_WALLET,
      ...LIFE,
      ...SCREENED,
      'fee_reserve',
      'rule_id',
      'cancel',
      'reason',
      'resume',
      'approval_from',
      'fee_judged',
      'refunded',
    ],
  },
  SWEEP: {
    states: [...SIGNED, 'FUELING', 'REPLACING'],
    plan: [
      ...GAS,
      ...POINTS,
      ...FUELLED,
      ...OTHER_WALLET,
      ...LIFE,
      'height',
      'waits',
      'own',
      'cancel',
    ],
  },
  FUEL: {
    states: [...SIGNED, 'REPLACING'],
    plan: [
      ...GAS,
      ...LIFE,
      'fee_limit',
      'for_gas',
      'for_max_fee_per_gas',
      'for_l1_fee',
      'replacement',
      'alone',
      'together',
      'settled',
      'cancel',
    ],
  },
  DRAIN: {
    states: [...SIGNED, 'REPLACING'],
    plan: [...GAS, ...LIFE, ...ONCE_WRITTEN, 'fee_limit', 'order', 'reserved_fee', 'cancel'],
  },
  STAKE: { states: STAKING_STATES, plan: STAKING },
  UNSTAKE: { states: STAKING_STATES, plan: STAKING },
  RELEASE: { states: STAKING_STATES, plan: STAKING },
  LEND: { states: SIGNED, plan: LENDING },
  LEND_BACK: { states: SIGNED, plan: LENDING },
  CONSOLIDATION: {
    states: [...SIGNED, 'REPLACING', 'VOIDING'],
    plan: [...LIFE, 'fee_reserve', 'target_coins', 'min_value', 'sum_most', 'reason'],
  },
  DEPOSIT: {
    states: ['CONFIRMING', 'SCREENING', 'FROZEN', 'SUSPENSE', 'CREDITED', 'SWEPT', 'REORGED'],
    plan: [...SCREENED, 'generation', 'frozen_wallet', 'unknown_sender', 'senders_released'],
  },
  TANK_DEPOSIT: { states: ['CONFIRMING', 'CREDITED', 'REORGED'], plan: ['generation'] },
} as const

const list = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ')

/**
 * Conditions on every row of a table, by the name of the check; `of`: the columns that the check
 * reads.
 */
const CHECKS: Record<string, { table: string; of: Record<string, string>; form: string }> = {
  transactions_form: {
    table: 'transactions',
    of: { kind: 'text', state: 'text', plan: 'jsonb' },
    form: Object.entries(STATE_SCHEMAS)
      .map(
        ([kind, { states, plan }]) =>
          `(kind = '${kind}' and state in (${list(states)}) and plan - array[${list(plan)}] = '{}'::jsonb)`,
      )
      .join('\n or '),
  },
  events_type: { table: 'events', of: { type: 'text' }, form: `type in (${list(EVENT_TYPES)})` },
}

/**
 * Returns the function that a check calls. PostgreSQL parses the text of a check again for every
 * statement that writes a row, which took a fifth of all its work for these checks; the body of a
 * function is parsed once for each connection.
 */
const functionOf = (
  name: string,
  { of, form }: { of: Record<string, string>; form: string },
): string => `
  create function ${name}_holds(${Object.entries(of)
    .map(([column, type]) => `${column} ${type}`)
    .join(', ')})
  returns boolean language plpgsql immutable parallel safe as $$ begin return ${form}; end $$`

/** Returns whether a check of a table has a definition. */
const isApplied = async (tx: Queryable, name: string, table: string, made: string) =>
  (
    await tx.one<{ said: string | null }>(
      `select obj_description(oid, 'pg_constraint') said from pg_constraint
       where conname = $1 and conrelid = to_regclass($2)`,
      [name, table],
    )
  )?.said === made

/** Returns whether {@link applyStateSchemas} would change nothing. Reads only. */
export async function hasStateSchemas(tx: Queryable): Promise<boolean> {
  for (const [name, check] of Object.entries(CHECKS))
    if (!(await isApplied(tx, name, check.table, functionOf(name, check)))) return false
  return true
}

/**
 * Updates the tables' checks to {@link STATE_SCHEMAS} and {@link EVENT_TYPES}, if they differ.
 * Existing rows are validated when a check changes.
 * @returns the names of the checks that were replaced
 */
export async function applyStateSchemas(tx: Queryable): Promise<string[]> {
  const names: string[] = []
  for (const [name, check] of Object.entries(CHECKS)) {
    const { table, of } = check
    const made = functionOf(name, check)
    if (await isApplied(tx, name, table, made)) continue
    await tx.query(`alter table ${table} drop constraint if exists ${name}`)
    await tx.query(`drop function if exists ${name}_holds`)
    await tx.query(made)
    await tx.query(
      `alter table ${table} add constraint ${name} check (${name}_holds(${Object.keys(of).join(', ')})) not valid`,
    )
    await tx.query(`comment on constraint ${name} on ${table} is '${made.replaceAll("'", "''")}'`)
    names.push(name)
  }
  return names
}

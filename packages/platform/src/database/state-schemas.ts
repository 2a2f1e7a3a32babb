import { EVENT_TYPES } from './event-types.ts'
import type { Queryable } from './pool.ts'

/** From a built plan to the chain's answer: what every kind goes through that is signed. */
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
/** What was taken of the gas tank for it. */
const FUELLED = ['fuel_id', 'float_taken', 'loan_id'] as const
/** Another wallet of the sub-account that pays its fee. */
const OTHER_WALLET = ['fee_wallet', 'fee_held'] as const
/**
 * Earlier builds wrote it into tank transactions that were adopted; one that still waits must go on
 * after an upgrade.
 */
const ONCE_WRITTEN = ['back_fee'] as const
/** `earlier`: an attempt that nodes had begun to sign. `adopted`: found in the nodes' records. */
const LIFE = ['earlier', 'adopted'] as const
const STAKING_STATES = [...SIGNED, 'FUELING', 'VOIDING', 'PARTIAL'] as const
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
  'step',
  'fees_paid',
  'delay_days',
  'adopted_steps',
  'order',
] as const
const SCREENED = ['screening_since', 'screening_alerted'] as const

/**
 * Of each kind of transaction, the states that it can be in, and what its plan may hold: amounts as
 * decimal strings in the smallest unit, flags as '1'. The types of {@link ../engine/transaction.ts}
 * and the check of the table are made of this.
 */
export const STATE_SCHEMAS = {
  WITHDRAWAL: {
    states: [
      ...SIGNED,
      'CREATED',
      'SCREENING',
      'AML_HELD',
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
  DEPOSIT: {
    states: ['CONFIRMING', 'SCREENING', 'FROZEN', 'SUSPENSE', 'CREDITED', 'SWEPT', 'REORGED'],
    plan: [...SCREENED, 'generation', 'frozen_wallet', 'unknown_sender', 'senders_released'],
  },
  TANK_DEPOSIT: { states: ['CONFIRMING', 'CREDITED', 'REORGED'], plan: ['generation'] },
} as const

const list = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ')

/** What every row of a table fulfils, by the name of the check; `of`: the columns that it reads. */
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
 * A check asks a function: PostgreSQL reads the text of a check anew for every statement that
 * writes a row, and that of these took a fifth of all that it did; what a function says is read
 * once for a connection.
 */
const functionOf = (
  name: string,
  { of, form }: { of: Record<string, string>; form: string },
): string => `
  create function ${name}_holds(${Object.entries(of)
    .map(([column, type]) => `${column} ${type}`)
    .join(', ')})
  returns boolean language plpgsql immutable parallel safe as $$ begin return ${form}; end $$`

/**
 * Makes the tables' checks what {@link STATE_SCHEMAS} and {@link EVENT_TYPES} say, where they are others.
 * Rows that are there already are held to them when they change. @returns the names of those that
 * were made anew
 */
export async function applyStateSchemas(tx: Queryable): Promise<string[]> {
  const names: string[] = []
  for (const [name, check] of Object.entries(CHECKS)) {
    const { table, of } = check
    const made = functionOf(name, check)
    const known = await tx.one<{ said: string | null }>(
      `select obj_description(oid, 'pg_constraint') said from pg_constraint
       where conname = $1 and conrelid = $2::regclass`,
      [name, table],
    )
    if (known?.said === made) continue
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

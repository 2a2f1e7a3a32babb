import type { Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from './aml.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { accountOf, addressKey, addressKeys, spaceOf } from './address-key.ts'
import { clearedFor, frozenAmong, type Hit } from './frozen.ts'
import { higher, type RiskLevel } from './levels.ts'
import { isOn, openToken, readPolicy, type AmlRow, type Direction } from './policy.ts'
import { ProviderError } from './providers/provider.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
  aml: Aml
}

/** Time in milliseconds for which a provider's response is valid for the transaction. */
export const FRESH_MS = 10 * 60_000
/** Number of addresses that are queried concurrently. */
const AT_ONCE = 8
/**
 * Time in milliseconds after which a step sends no further query, because the step must end before
 * its lease does. Responses are stored, and the next step continues.
 */
const STEP_MS_MAX = 40_000

export interface Counterparty {
  address: string
  tag: string | null
}
/**
 * One party with all its addresses for which the provider is queried, because a provider identifies
 * addresses by their text.
 */
interface ScreenedParty extends Counterparty {
  queried: string[]
}

/** Thrown when screening could not be completed; the transaction waits and is retried. */
export class ScreeningWaits extends Error {
  readonly provider: string
  /** Time in milliseconds after which the provider accepts requests again; null: unknown. */
  readonly retryAfterMs: number | null
  constructor(provider: string, message: string, retryAfterMs: number | null = null) {
    super(message)
    this.name = 'ScreeningWaits'
    this.provider = provider
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Screens the other parties of a transaction: OFAC's list first, then the frozen list, then the
 * provider if the sub-account has enabled this direction. Without hits the transaction may pass. A
 * transaction that needs the provider passes only with the provider's clear response.
 * @throws ScreeningWaits if the provider gives no clear response
 */
export async function screen(
  services: Services,
  row: TransactionRow,
  network: Network,
  direction: Direction,
  parties: readonly Counterparty[],
): Promise<Hit[]> {
  const counterparties = counterpartiesOf(network, parties)
  const sanctioned = [...counterparties].filter(([, { address }]) =>
    services.aml.sanctions.has(network, address),
  )
  const partyKeys = parties.flatMap(({ address }) => addressKeys(network, address))
  const listed = await frozenAmong(services.database, row, {
    space: spaceOf(network),
    keys: partyKeys,
  })
  const hits: Hit[] = sanctioned.map(([key, { address, tag }]) => ({
    key,
    address,
    tag,
    source: 'OFAC',
    level: 'SEVERE',
    freezeId: null,
  }))
  for (const freeze of listed) {
    if (!hits.some(({ key }) => key === freeze.address_key)) {
      hits.push({
        key: freeze.address_key,
        address: freeze.address,
        tag: freeze.address_tag,
        source: freeze.source,
        level: freeze.risk_level as RiskLevel,
        freezeId: freeze.id,
      })
    }
  }
  if (hits.length > 0) return hits
  const policy = await readPolicy(services.database, row.workspace_id, row.sub_account_id as string)
  if (!isOn(policy, direction)) return []
  const cleared = await clearedFor(services.database, row)
  const keys = [...counterparties.keys()].filter((key) => !cleared.has(key))
  const levels = await levelsOf(services, row, network, policy, { keys, counterparties })
  return [...levels].flatMap(([key, level]) => {
    if (level === null || !policy.risk_levels.includes(level)) return []
    const { address, tag } = counterparties.get(key) as ScreenedParty
    return [{ key, address, tag, source: policy.provider, level, freezeId: null }]
  })
}

/** Returns the parties by the key of their address; spellings of one address are one party. */
function counterpartiesOf(
  network: Network,
  parties: readonly Counterparty[],
): Map<string, ScreenedParty> {
  const byKey = new Map<string, ScreenedParty>()
  for (const { address: text, tag } of parties) {
    const [key, address] = [addressKey(network, text), accountOf(network, text)]
    const party = byKey.get(key)
    if (!party) byKey.set(key, { address, tag, queried: [address] })
    else if (!party.queried.includes(address)) party.queried.push(address)
  }
  return byKey
}

/** Returns the risk level of each address, from recent responses or from the provider. */
async function levelsOf(
  services: Services,
  row: TransactionRow,
  network: Network,
  policy: AmlRow,
  {
    keys,
    counterparties,
  }: { keys: readonly string[]; counterparties: ReadonlyMap<string, ScreenedParty> },
): Promise<Map<string, RiskLevel | null>> {
  const started = services.environment.now()
  const levels = await freshAnswers(services, row, network, policy, keys)
  await copyAnswers(services, row, network, policy, [...levels.keys()])
  const pending = keys.filter((key) => !levels.has(key))
  if (pending.length === 0) return levels
  let token: string
  try {
    token = openToken(services, row.sub_account_id as string, policy)
  } catch (error) {
    throw new ScreeningWaits(policy.provider, reasonOf(error))
  }
  for (let at = 0; at < pending.length; at += AT_ONCE) {
    if (services.environment.now() - started > STEP_MS_MAX) {
      throw new ScreeningWaits(
        policy.provider,
        `${pending.length - at} addresses are not screened yet`,
      )
    }
    const outcomes = await Promise.allSettled(
      pending.slice(at, at + AT_ONCE).map(async (key) => {
        const { queried } = counterparties.get(key) as ScreenedParty
        levels.set(key, await askProvider(services, row, policy, { token, key, queried }))
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (!failed) continue
    if (failed.reason instanceof ProviderError)
      throw new ScreeningWaits(policy.provider, failed.reason.message, failed.reason.retryAfterMs)
    throw failed.reason
  }
  return levels
}

/** Queries the provider about one party and stores the response, as evidence and for later use. */
async function askProvider(
  services: Services,
  row: TransactionRow,
  policy: AmlRow,
  { token, key, queried }: { token: string; key: string; queried: readonly string[] },
): Promise<RiskLevel | null> {
  let [level, alert]: [RiskLevel | null, RiskLevel | null] = [null, null]
  for (const address of queried) {
    const subject = { address, network: row.network }
    const found = await services.aml.providers[policy.provider].screen(token, subject, (other) => {
      alert = higher(alert, other)
    })
    level = higher(level, found)
  }
  if (alert !== null && policy.risk_levels.includes(alert)) {
    services.log.warn(
      { transaction: row.id, provider: policy.provider, address: key, level: alert },
      'an address has exposure of a held level that does not decide by itself; the transaction passes',
    )
  }
  await services.database.query(
    `insert into aml_screenings (workspace_id, transaction_id, provider, address_key,
      risk_level, screened_at, alert_level)
     values ($6, $1, $2, $3, $4, $5, $7)`,
    [
      row.id,
      policy.provider,
      key,
      level,
      new Date(services.environment.now()),
      row.workspace_id,
      alert,
    ],
  )
  return level
}

/**
 * SQL of the valid responses about addresses ($4) for transactions of the sub-account ($5) on the
 * network ($8): recent enough ($3), made with the current settings, and newer than the last freeze
 * of the address. A provider's response does not depend on the transaction, so one for another
 * transaction counts too if it is newer than $9.
 */
const VALID = `from aml_screenings s
  join transactions t on t.workspace_id = s.workspace_id and t.id = s.transaction_id
  where s.workspace_id = $7 and t.sub_account_id = $5 and t.network = $8 and s.provider = $2
    and s.screened_at > $3 and (s.transaction_id = $1 or s.screened_at > $9)
    and s.address_key = any($4)
    and not exists (
      select 1 from frozen_addresses f
      where f.workspace_id = $7 and f.sub_account_id = $5 and f.space = $6
        and f.address_key = s.address_key and f.frozen_at >= s.screened_at
    )`

function validParams(
  services: Pick<Services, 'environment' | 'aml'>,
  row: TransactionRow,
  network: Network,
  policy: AmlRow,
  keys: readonly string[],
): unknown[] {
  const now = services.environment.now()
  const after = (ms: number) => new Date(Math.max(now - ms, policy.updated_at.getTime() - 1))
  return [
    row.id,
    policy.provider,
    after(FRESH_MS),
    keys,
    row.sub_account_id,
    spaceOf(network),
    row.workspace_id,
    network.code,
    after(Math.min(FRESH_MS, services.aml.cacheMs ?? 0)),
  ]
}

/**
 * Returns the provider's valid responses about addresses. The newest one counts, and one for this
 * transaction before one for another.
 */
export async function freshAnswers(
  services: Pick<Services, 'environment' | 'database' | 'aml'>,
  row: TransactionRow,
  network: Network,
  policy: AmlRow,
  keys: readonly string[],
): Promise<Map<string, RiskLevel | null>> {
  const rows = await services.database.query<{ address_key: string; risk_level: RiskLevel | null }>(
    `select distinct on (s.address_key) s.address_key, s.risk_level ${VALID}
     order by s.address_key, s.screened_at desc, (s.transaction_id = $1) desc, s.id desc`,
    validParams(services, row, network, policy, keys),
  )
  return new Map(rows.map((each) => [each.address_key, each.risk_level]))
}

/**
 * Stores valid responses that were made for other transactions for this one too, with their times,
 * so that its records contain all evidence.
 */
async function copyAnswers(
  services: Services,
  row: TransactionRow,
  network: Network,
  policy: AmlRow,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return
  await services.database.query(
    `insert into aml_screenings (workspace_id, transaction_id, provider, address_key, risk_level,
       screened_at, alert_level)
     select $7, $1, $2, n.address_key, n.risk_level, n.screened_at, n.alert_level from (
       select distinct on (s.address_key) s.* ${VALID}
       order by s.address_key, s.screened_at desc, (s.transaction_id = $1) desc, s.id desc
     ) n where n.transaction_id <> $1`,
    validParams(services, row, network, policy, keys),
  )
}

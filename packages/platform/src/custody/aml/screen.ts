import type { Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
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
  aml: Aml
}

/** Time in milliseconds for which a provider's response is valid. */
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
  constructor(provider: string, message: string) {
    super(message)
    this.name = 'ScreeningWaits'
    this.provider = provider
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
        let level: RiskLevel | null = null
        for (const address of (counterparties.get(key) as ScreenedParty).queried) {
          level = higher(
            level,
            await services.aml.providers[policy.provider].screen(token, {
              address,
              network: network.code,
            }),
          )
        }
        await services.database.query(
          `insert into aml_screenings (workspace_id, transaction_id, provider, address_key,
            risk_level, screened_at)
         values ($6, $1, $2, $3, $4, $5)`,
          [
            row.id,
            policy.provider,
            key,
            level,
            new Date(services.environment.now()),
            row.workspace_id,
          ],
        )
        levels.set(key, level)
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (!failed) continue
    if (failed.reason instanceof ProviderError)
      throw new ScreeningWaits(policy.provider, failed.reason.message)
    throw failed.reason
  }
  return levels
}

/**
 * Returns the provider's responses for a transaction that are still valid: recent enough, made with
 * the current settings, and newer than the last freeze of the address.
 */
export async function freshAnswers(
  services: Pick<Services, 'environment' | 'database'>,
  row: TransactionRow,
  network: Network,
  policy: AmlRow,
  keys: readonly string[],
): Promise<Map<string, RiskLevel | null>> {
  const since = new Date(
    Math.max(services.environment.now() - FRESH_MS, policy.updated_at.getTime() - 1),
  )
  const rows = await services.database.query<{ address_key: string; risk_level: RiskLevel | null }>(
    `select distinct on (s.address_key) s.address_key, s.risk_level from aml_screenings s
     where s.workspace_id = $7 and s.transaction_id = $1 and s.provider = $2 and s.screened_at > $3
       and s.address_key = any($4)
       and not exists (
         select 1 from frozen_addresses f
         where f.workspace_id = $7 and f.sub_account_id = $5 and f.space = $6
           and f.address_key = s.address_key
           and f.frozen_at >= s.screened_at
       )
     order by s.address_key, s.screened_at desc, s.id desc`,
    [row.id, policy.provider, since, keys, row.sub_account_id, spaceOf(network), row.workspace_id],
  )
  return new Map(rows.map((each) => [each.address_key, each.risk_level]))
}

import { formatAmount, type Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import { adopt, type Adopted } from './adopt.ts'
import { groupOf, keyOf } from './group.ts'
import type { Recorded } from './history.ts'
import { NotAdopted, open, type Opened } from './open.ts'
import type { ScanFrom } from './restore-wallets.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  log: Logger
  callers: Callers
  devnet: DevnetControl | null
}

export interface Unadopted {
  network: string
  workspace: string
  purpose: string
  transaction_id: string | null
  at: string
  nodes: number[]
  reason: string
  matters: boolean
}
export interface AdoptedAll {
  transactions: Adopted[]
  wallets: { workspace: string; asset: string }[]
  unadopted: { recorded: Recorded; error: NotAdopted }[]
}

/** Formats an amount for the operator. */
export const show = (services: Pick<Services, 'registry'>, asset: string, amount: bigint): string =>
  formatAmount(amount, services.registry.asset(asset)?.decimals ?? 0)

/** Describes for the operator a record that was not adopted. */
export const shown = (recorded: Recorded, error: NotAdopted): Unadopted => ({
  network: recorded.unsigned.network,
  workspace: recorded.workspace,
  purpose: recorded.purpose,
  transaction_id: recorded.transaction_id ?? null,
  at: new Date(recorded.at).toISOString(),
  nodes: recorded.nodes,
  reason: error.message,
  matters: error.matters,
})

/**
 * Converts the error of one record to the reason why this record was not adopted; the other records
 * are still processed.
 */
function notAdopted(services: Services, error: unknown): NotAdopted {
  if (error instanceof NotAdopted) return error
  services.log.error(
    { err: error },
    'a transaction that the signer nodes recorded could not be added to the database',
  )
  return new NotAdopted(reasonOf(error))
}

/**
 * Decodes and verifies the records, oldest first, because later ones may spend outputs of earlier
 * ones.
 */
export async function openAll(
  services: Services,
  recorded: readonly Recorded[],
): Promise<{ recorded: Recorded; opened: Opened | null; error: NotAdopted | null }[]> {
  const raws = new Map<string, string>()
  const all: Awaited<ReturnType<typeof openAll>> = []
  for (const each of [...recorded].sort((a, b) => a.at - b.at)) {
    try {
      const opened = await open(services, each, raws)
      raws.set(opened.signed.hash, opened.signed.raw)
      all.push({ recorded: each, opened, error: null })
    } catch (error) {
      all.push({ recorded: each, opened: null, error: notAdopted(services, error) })
    }
  }
  return all
}

const isFuel = ([{ recorded }]: readonly [Opened, ...Opened[]]): boolean =>
  recorded.purpose === 'fuel'

/**
 * Adopts the records that can be adopted, each transaction in its own commit, and returns the
 * reasons for the others.
 */
export async function adoptAll(
  services: Services,
  recorded: readonly Recorded[],
  scanFrom: ScanFrom,
): Promise<AdoptedAll> {
  const all: AdoptedAll = { transactions: [], wallets: [], unadopted: [] }
  const groups = new Map<string, [Opened, ...Opened[]]>()
  for (const { recorded: each, opened, error } of await openAll(services, recorded)) {
    if (!opened) {
      if (error) all.unadopted.push({ recorded: each, error })
      continue
    }
    const key = `${opened.workspaceId} ${keyOf(opened)}`
    const group = groups.get(key)
    if (group) group.push(opened)
    else groups.set(key, [opened])
  }
  // Fuel comes last: the transactions that it pays for show which addresses belong to the platform.
  for (const attempts of [...groups.values()].sort(
    (a, b) => Number(isFuel(a)) - Number(isFuel(b)),
  )) {
    try {
      const { adopted, walletsMade } = await adopt(
        services,
        await groupOf(services, attempts),
        scanFrom,
      )
      all.transactions.push({
        ...adopted,
        amount: show(services, adopted.asset, BigInt(adopted.amount)),
      })
      all.wallets.push(...walletsMade.map((asset) => ({ workspace: adopted.workspace, asset })))
    } catch (error) {
      all.unadopted.push(
        ...attempts.map((each) => ({
          recorded: each.recorded,
          error: notAdopted(services, error),
        })),
      )
    }
  }
  return all
}

/**
 * Stores the transactions that could not be adopted. They are reported until they are adopted, and
 * do not hold the database.
 */
export async function noteUnadopted(
  services: Pick<Services, 'environment' | 'database'>,
  { unadopted }: AdoptedAll,
  tried: readonly Recorded[],
): Promise<void> {
  const failed = new Set(unadopted.map(({ recorded }) => recorded.id))
  await services.database.query('delete from unadopted_steps where id = any($1)', [
    tried.map(({ id }) => id).filter((id) => !failed.has(id)),
  ])
  for (const { recorded, error } of unadopted) {
    await services.database.query(
      `insert into unadopted_steps (id, recorded, reason, matters, noted_at)
         values ($1, $2, $3, $4, $5) on conflict (id) do update
         set reason = excluded.reason, matters = excluded.matters, recorded = excluded.recorded`,
      [
        recorded.id,
        JSON.stringify(recorded),
        error.message,
        error.matters,
        new Date(services.environment.now()),
      ],
    )
  }
}

import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import { ApiError } from '../../core/errors.ts'
import { publishReserves } from '../reserves/publish.ts'
import { surplusOf, type AssetEntry, type Look } from '../reserves/snapshot.ts'
import { getSnapshot, listSnapshots, presentSnapshot, type SnapshotRow } from '../reserves/store.ts'
import { argument, OperatorError, type Command } from './command.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  log: Logger
  aml: Aml
}

interface ReservesReport {
  time: string
  networks: Look[]
  assets: AssetEntry[]
}

/**
 * Returns the operator's summary of a statement: its totals, and the assets of which more is owed
 * than held. Amounts in the smallest unit.
 */
const present = (row: Pick<SnapshotRow, 'id' | 'hash' | 'statement' | 'signatures'>) => {
  const { time, networks, assets } = JSON.parse(row.statement) as ReservesReport
  return {
    id: row.id,
    time,
    hash: row.hash,
    signed_by: row.signatures.map(({ node }) => node),
    networks,
    assets,
    short: assets.filter((each) => surplusOf(each) < 0n).map(({ asset }) => asset),
  }
}

/**
 * Publishes the current holdings and liabilities. `short` lists shortfalls that an operator must
 * explain; the statement is published anyway.
 */
export const publish: Command<Services> = async (services) => {
  const made = await publishReserves(services)
  return { ...present(made), problems: made.problems }
}

export const list: Command<Pick<Services, 'database'>> = async ({ database }) => ({
  statements: (await listSnapshots(database, 100, 0)).map(present),
})

/**
 * Returns one published statement, by default the newest; includes its list of addresses if
 * requested.
 */
export const show: Command<Pick<Services, 'database'>> = async ({ database }, input) => {
  const id = argument(input, 'id')
  const row =
    id === null
      ? (await listSnapshots(database, 1, 0))[0]
      : await getSnapshot(database, id).catch((error: unknown) => {
          throw error instanceof ApiError ? new OperatorError(error.message) : error
        })
  if (!row)
    throw new OperatorError(
      'no statement of reserves is published yet: run "npx custody reserves publish"',
    )
  const holdings =
    input['holdings'] === true
      ? (
          await database.one<{ holdings: string }>(
            'select holdings from reserve_snapshots where id = $1',
            [row.id],
          )
        )?.holdings
      : undefined
  return {
    ...present(row),
    published: presentSnapshot(row),
    ...(holdings === undefined ? {} : { holdings }),
  }
}

import { createHash } from 'node:crypto'
import { canonicalJson } from '@custody/request-auth'
import type { Chain } from '../../core/engine/chain.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import { ApiError } from '../../core/errors.ts'
import { readBooks, type Books, type Liability } from './books.ts'
import { heightOf, heldOn, type Height, type HeldAt } from './chains.ts'
import { blindOf, leafOf, rootOf, secretOf, treeOf, type TreeNode } from './tree.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

export interface Look {
  network: string
  from: Height
  to: Height
}
interface Leaf extends TreeNode {
  asset: string
  place: number
  subAccountId: string | null
  nonce: Buffer
}

/**
 * One asset of a statement, as documented in docs/production/proof-of-reserves.md. Amounts are
 * decimal integers.
 */
export interface AssetEntry {
  asset: string
  network: string
  decimals: number
  held: string
  operating: string
  owed: string
  overdrawn: string
  arriving: string
  leaving: string
  leaves: number
  depth: number
  top: string
  root: string
}

/** The state at one moment, not yet signed. */
export interface Snapshot {
  id: string
  time: string
  statement: string
  holdings: string
  hash: string
  /** 32 bytes from which each sub-account's secret is derived. */
  secret: Buffer
  leaves: Leaf[]
  assets: AssetEntry[]
  networks: Look[]
}

const NONCE_BYTES = 32
const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * Returns the surplus of an asset in the smallest unit; below zero if more is owed than is held
 * after subtracting operating funds.
 */
export const surplusOf = ({
  held,
  operating,
  owed,
}: Pick<AssetEntry, 'held' | 'operating' | 'owed'>): bigint =>
  BigInt(held) - BigInt(operating) - BigInt(owed)

/** Returns the chains on which we have addresses. */
async function chainsInUse(services: Services): Promise<Chain[]> {
  const rows = await services.database.query<{ network: string }>(
    'select distinct network from chain_addresses',
  )
  return services.networks
    .all()
    .filter(({ network }) => rows.some((row) => row.network === network.code))
}

/**
 * Checks that the chain of every asset with a balance can be queried, because a statement would
 * report the balance as missing.
 * @throws ApiError `NETWORK_UNAVAILABLE`
 */
function assertComplete(services: Services, books: Books, chains: readonly Chain[]): void {
  const named = [...books.operating].concat(
    books.liabilities.map(({ asset, balance }) => [asset, balance]),
  )
  const lost = named.find(
    ([asset, amount]) =>
      amount !== 0n &&
      !chains.some(({ network }) => network.code === services.registry.asset(asset)?.network),
  )
  if (lost)
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `the network of ${lost[0]} has no endpoint: configure one, and publish again`,
    )
}

/**
 * Takes a snapshot of chains and ledger.
 * @throws if a chain cannot be queried, because a statement must not contain unverified amounts
 */
export async function takeSnapshot(services: Services): Promise<Snapshot> {
  const { environment, database } = services
  const chains = await chainsInUse(services)
  const before = await Promise.all(chains.map(heightOf))
  const time = database.now().toISOString()
  const books = await readBooks(database)
  assertComplete(services, books, chains)
  const held = (await Promise.all(chains.map((chain) => heldOn(services, chain)))).flat()
  const after = await Promise.all(chains.map(heightOf))
  const networks = chains
    .map(({ network }, at) => ({
      network: network.code,
      from: before[at] as Height,
      to: after[at] as Height,
    }))
    .sort((a, b) => (a.network < b.network ? -1 : 1))
  const turned = networks.find(({ from, to }) => to.height < from.height)
  if (turned)
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `${turned.network} was reorganised while it was read: publish again`,
    )
  const [id, secret] = [environment.uuid(), Buffer.from(environment.bytes(NONCE_BYTES))]
  const { assets, leaves } = entriesOf(services, { id, time, secret, books, held, networks })
  const holdings = canonicalJson({
    version: 1,
    id,
    keys: await keysOf(services, held),
    addresses: held.map(written),
  })
  const statement = canonicalJson({
    version: 1,
    kind: 'proof-of-reserves',
    id,
    mode: services.settings.network,
    time,
    networks,
    assets,
    holdings: { addresses: held.length, sha256: sha256Hex(holdings) },
  })
  return {
    id,
    time,
    statement,
    holdings,
    hash: sha256Hex(statement),
    secret,
    leaves,
    assets,
    networks,
  }
}

const written = ({ held, ...at }: HeldAt) => ({
  ...at,
  held: held.map((each) => ({ ...each, amount: String(each.amount) })),
})

interface SnapshotRow {
  id: string
  time: string
  secret: Buffer
  books: Books
  held: readonly HeldAt[]
  networks: readonly Look[]
}

function entriesOf(
  services: Services,
  match: SnapshotRow,
): { assets: AssetEntry[]; leaves: Leaf[] } {
  const { id, time, books, networks } = match
  const sums = new Map<string, bigint>()
  for (const { asset, amount } of match.held.flatMap((at) => at.held))
    sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  const names = new Set([...sums.keys(), ...books.liabilities.map(({ asset }) => asset)])
  for (const [asset, amount] of books.operating) if (amount !== 0n) names.add(asset)
  const leaves: Leaf[] = []
  const assets = [...names].sort().flatMap((name) => {
    const asset = services.registry.asset(name)
    const look = networks.find(({ network }) => network === asset?.network)
    // Wallets of a network that is no longer configured are empty here, so they are omitted.
    if (!asset || !look) return []
    const liabilities = books.liabilities.filter((each) => each.asset === name)
    const own = leavesOf(services, match, name, liabilities)
    leaves.push(...own)
    const { depth, top } = treeOf(id, name, own)
    const owed = String(top.sum)
    const header = {
      asset: name,
      network: asset.network,
      leaves: own.length,
      depth,
      owed,
      top: top.hash.toString('hex'),
    }
    return [
      {
        ...header,
        decimals: asset.decimals,
        held: String(sums.get(name) ?? 0n),
        operating: String(books.operating.get(name) ?? 0n),
        overdrawn: String(
          liabilities.reduce((sum, { balance }) => (balance < 0n ? sum - balance : sum), 0n),
        ),
        arriving: String(books.arriving.get(name) ?? 0n),
        leaving: String(books.leaving.get(name) ?? 0n),
        root: rootOf({ ...header, from: look.from, to: look.to, snapshot: id, time }),
      },
    ]
  })
  return { assets, leaves }
}

/**
 * Returns the leaves of an asset, ordered by their hashes. The order reveals nothing about balances
 * or names and differs in each snapshot.
 */
function leavesOf(
  { environment }: Services,
  { id, secret }: SnapshotRow,
  asset: string,
  liabilities: readonly Liability[],
): Leaf[] {
  return liabilities
    .map(({ workspace, subAccountId, subAccount, balance }) => {
      const nonce = Buffer.from(environment.bytes(NONCE_BYTES))
      const blind =
        subAccountId === null || subAccount === null
          ? Buffer.from(environment.bytes(NONCE_BYTES))
          : blindOf(secretOf(secret, subAccountId), workspace, subAccount)
      return {
        ...leafOf(id, asset, blind, nonce, balance < 0n ? 0n : balance),
        asset,
        subAccountId,
        nonce,
      }
    })
    .sort((a, b) => Buffer.compare(a.hash, b.hash))
    .map((leaf, place) => ({ ...leaf, place }))
}

interface KeyRow {
  workspace: string
  curve: string
  key_id: string
  public_key: string
  chain_code: string
  epoch: number
  certificates: { node: number; signature: string }[]
}

/** Returns the certified keys of all workspaces that hold something. */
async function keysOf(services: Services, held: readonly HeldAt[]): Promise<object[]> {
  const rows = await services.database.query<KeyRow>(
    `select w.name workspace, k.curve, k.key_id, encode(k.public_key, 'hex') public_key,
       encode(k.chain_code, 'hex') chain_code, k.epoch,
       k.certificates
     from workspace_keys k join workspaces w on w.id = k.workspace_id where w.name = any($1)
       order by w.name, k.curve`,
    [[...new Set(held.map(({ workspace }) => workspace))]],
  )
  return rows.map((row) => ({ ...row, mode: services.settings.network }))
}

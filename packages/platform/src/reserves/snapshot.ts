import { createHash } from 'node:crypto'
import { canonicalJson } from '@custody/request-auth'
import type { Chain } from '../engine/chain.ts'
import type { Services } from '../engine/services.ts'
import { ApiError } from '../errors.ts'
import { readBooks, type Books, type Liability } from './books.ts'
import { heightOf, heldOn, type Height, type HeldAt } from './chains.ts'
import { blindOf, leafOf, rootOf, secretOf, treeOf, type TreeNode } from './tree.ts'

export interface Look {
  network: string
  from: Height
  to: Height
}
export interface Leaf extends TreeNode {
  asset: string
  place: number
  subAccountId: string | null
  nonce: Buffer
}

/**
 * One asset of a statement, as docs/production/proof-of-reserves.md tells. Amounts: decimal
 * integers.
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

/** What was found at one moment, and not yet signed. */
export interface Snapshot {
  id: string
  time: string
  statement: string
  holdings: string
  hash: string
  /** 32 bytes of which each sub-account's secret is made. */
  secret: Buffer
  leaves: Leaf[]
  assets: AssetEntry[]
  networks: Look[]
}

const NONCE_BYTES = 32
const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * By how much an asset is covered, in the smallest unit; below zero: more is owed than is held
 * beside what is operating.
 */
export const surplusOf = ({
  held,
  operating,
  owed,
}: Pick<AssetEntry, 'held' | 'operating' | 'owed'>): bigint =>
  BigInt(held) - BigInt(operating) - BigInt(owed)

/** Chains on which addresses of ours exist. */
async function chainsInUse(services: Services): Promise<Chain[]> {
  const rows = await services.database.query<{ network: string }>(
    'select distinct network from chain_addresses',
  )
  return services.networks
    .all()
    .filter(({ network }) => rows.some((row) => row.network === network.code))
}

/**
 * Something of an asset is in the books whose chain cannot be asked: a statement would call it
 * missing.
 */
function assertAsked(services: Services, books: Books, chains: readonly Chain[]): void {
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
 * Looks at chains and books. @throws where a chain cannot be asked: nothing is stated of what
 * nobody saw
 */
export async function takeSnapshot(services: Services): Promise<Snapshot> {
  const { environment, database } = services
  const chains = await chainsInUse(services)
  const before = await Promise.all(chains.map(heightOf))
  const time = database.now().toISOString()
  const books = await readBooks(database)
  assertAsked(services, books, chains)
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

interface Found {
  id: string
  time: string
  secret: Buffer
  books: Books
  held: readonly HeldAt[]
  networks: readonly Look[]
}

function entriesOf(services: Services, found: Found): { assets: AssetEntry[]; leaves: Leaf[] } {
  const { id, time, books, networks } = found
  const sums = new Map<string, bigint>()
  for (const { asset, amount } of found.held.flatMap((at) => at.held))
    sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  const names = new Set([...sums.keys(), ...books.liabilities.map(({ asset }) => asset)])
  for (const [asset, amount] of books.operating) if (amount !== 0n) names.add(asset)
  const leaves: Leaf[] = []
  const assets = [...names].sort().flatMap((name) => {
    const asset = services.registry.asset(name)
    const look = networks.find(({ network }) => network === asset?.network)
    // A wallet on a network that is not configured any more, and nothing in it.
    if (!asset || !look) return []
    const liabilities = books.liabilities.filter((each) => each.asset === name)
    const own = leavesOf(services, found, name, liabilities)
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
 * In the order of their hashes, which nobody can tell from balances or names, and which is another
 * in each snapshot.
 */
function leavesOf(
  { environment }: Services,
  { id, secret }: Found,
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

/** The certified keys of all workspaces that hold something. */
async function keysOf(services: Services, held: readonly HeldAt[]): Promise<object[]> {
  const rows = await services.database.query<KeyRow>(
    `select w.name workspace, k.curve, k.key_id, encode(k.public_key, 'hex') public_key, encode(k.chain_code, 'hex') chain_code, k.epoch,
       k.certificates
     from workspace_keys k join workspaces w on w.id = k.workspace_id where w.name = any($1) order by w.name, k.curve`,
    [[...new Set(held.map(({ workspace }) => workspace))]],
  )
  return rows.map((row) => ({ ...row, mode: services.settings.network }))
}

import { isMode, type NetworkMode } from '@custody/chains/mode'
import { canonicalJson } from '@custody/request-auth/web'
import { VerificationError } from '../trust/errors.ts'
import type { CertifiedKey } from '../trust/keys.ts'
import type { NodeSignature } from '../trust/trust.ts'
import { DEPTH_MAX, rootOf, sha256Hex, SUM_LIMIT, type Height } from './hashes.ts'

/** One asset of a statement. Amounts are decimal integers in its smallest unit. */
export interface AssetReserves {
  asset: string
  network: string
  decimals: number
  /** Balance on the chain at the installation's addresses. */
  held: string
  /**
   * Part of `held` that belongs to no sub-account according to the books: gas tanks and remaining
   * fuel.
   */
  operating: string
  /** Sum of all leaves. */
  owed: string
  /**
   * Sum of the negative balances of sub-accounts after a reorganization. They do not reduce the
   * balances of others.
   */
  overdrawn: string
  /** Amount in a block that is not credited yet; part of `held`. */
  arriving: string
  /**
   * Amount of transfers that are signed and not yet final, without fees. It is still owed, but may
   * no longer be held.
   */
  leaving: string
  leaves: number
  depth: number
  /** Hash of the tree's top, and hash of all that the root binds. Hex. */
  top: string
  root: string
}

export interface Statement {
  version: 1
  kind: 'proof-of-reserves'
  /** UUID of the snapshot. */
  id: string
  mode: NetworkMode
  /** Time of the snapshot of the books, ISO 8601. */
  time: string
  /** The blocks between which each chain was read. */
  networks: { network: string; from: Height; to: Height }[]
  assets: AssetReserves[]
  /** Number of addresses, and the hash of their list, which is a separate document. */
  holdings: { addresses: number; sha256: string }
}

/** A published statement: its exact bytes, and the signer nodes' signatures of them. */
export interface PublishedStatement {
  statement: string
  signatures: NodeSignature[]
}

/**
 * Addresses with a balance, and the keys from which they are derived. Amounts in the smallest unit.
 */
export interface Holdings {
  version: 1
  id: string
  keys: CertifiedKey[]
  addresses: {
    workspace: string
    network: string
    address: string
    path: number[]
    /** `staked`: locked, lent or cooling down in the name of the address. */
    held: { asset: string; form: 'balance' | 'staked'; amount: string }[]
  }[]
}

const AMOUNT = /^(?:0|[1-9]\d{0,38})$/
const HASH = /^[0-9a-f]{64}$/

/**
 * Reports an invalid statement or proof.
 * @throws VerificationError `RESERVES` always
 */
export const wrong = (
  message: string,
  details: { expected?: string; actual?: string } = {},
): never => {
  throw new VerificationError('RESERVES', message, details)
}

/**
 * Reads an amount below 2^128.
 * @throws VerificationError `RESERVES`
 */
export function amountOf(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !AMOUNT.test(value))
    return wrong(`${what} is not an amount: ${String(value).slice(0, 60)}`)
  const amount = BigInt(value)
  return amount < SUM_LIMIT ? amount : wrong(`${what} is not below 2^128`)
}

/**
 * Parses JSON and checks that it is in canonical form.
 * @throws VerificationError `RESERVES`
 */
export function readCanonical(text: unknown, what: string): Record<string, unknown> {
  let value: unknown = null
  try {
    value = typeof text === 'string' ? JSON.parse(text) : null
    if (canonicalJson(value) !== text) return wrong(`the ${what} is not in canonical JSON`)
  } catch (error) {
    if (error instanceof VerificationError) throw error
    return wrong(`the ${what} is not JSON`)
  }
  return typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)
    : wrong(`the ${what} is not an object`)
}

/**
 * Checks that a value is an object with exactly the given fields.
 * @throws VerificationError if it has other fields
 */
export function assertFields(value: unknown, names: readonly string[], what: string): void {
  const own = typeof value === 'object' && value !== null ? Object.keys(value).sort().join() : ''
  if (own !== [...names].sort().join()) wrong(`${what} has other fields than ${names.join(', ')}`)
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

function assertHeight(value: Height, what: string): void {
  assertFields(value, ['height', 'hash'], what)
  if (!isCount(value.height) || typeof value.hash !== 'string' || value.hash === '')
    wrong(`${what} is not a block`)
}

function assertAsset(each: AssetReserves, { id, time, networks }: Statement): void {
  const what = `${String(each?.asset)} of the statement`
  const amounts = ['held', 'operating', 'owed', 'overdrawn', 'arriving', 'leaving'] as const
  assertFields(
    each,
    ['asset', 'network', 'decimals', ...amounts, 'leaves', 'depth', 'top', 'root'],
    what,
  )
  for (const name of amounts) amountOf(each[name], `${name} of ${what}`)
  const { leaves, depth, top } = each
  if (
    typeof each.asset !== 'string' ||
    !isCount(each.decimals) ||
    !isCount(leaves) ||
    !isCount(depth)
  )
    wrong(`${what} is malformed`)
  if (depth < 1 || depth > DEPTH_MAX || leaves > 2 ** depth)
    wrong(`${what} has a tree of ${leaves} leaves and depth ${depth}`)
  if (!HASH.test(top)) wrong(`${what} has no root`)
  const look = networks.find(({ network }) => network === each.network)
  if (!look)
    return wrong(`${what} is on ${String(each.network)}, which the statement does not cover`)
  const { asset, network, owed } = each
  const root = rootOf({
    asset,
    network,
    from: look.from,
    to: look.to,
    snapshot: id,
    time,
    leaves,
    depth,
    owed,
    top,
  })
  if (root !== each.root)
    wrong(`the root of ${what} does not match its data`, {
      expected: root,
      actual: String(each.root),
    })
}

/**
 * Parses a statement and checks its shape and its roots. Signatures are not checked here.
 * @param text canonical JSON, exactly as published
 * @throws VerificationError `RESERVES`
 */
export function readStatement(text: unknown): { statement: Statement; hash: string } {
  const statement = readCanonical(text, 'statement') as unknown as Statement
  assertFields(
    statement,
    ['version', 'kind', 'id', 'mode', 'time', 'networks', 'assets', 'holdings'],
    'the statement',
  )
  if (statement.version !== 1 || statement.kind !== 'proof-of-reserves')
    wrong('it is not a statement of reserves of version 1')
  const { id, mode, time, networks, assets, holdings } = statement
  if (typeof id !== 'string' || typeof time !== 'string' || Number.isNaN(Date.parse(time)))
    wrong('the statement has no id or no time')
  if (!isMode(mode)) wrong('the statement has an unknown network mode')
  if (!Array.isArray(networks) || !Array.isArray(assets))
    return wrong('the statement lists no networks or assets')
  for (const look of networks) {
    assertFields(look, ['network', 'from', 'to'], 'a network of the statement')
    assertHeight(look.from, `the first block of ${look.network}`)
    assertHeight(look.to, `the last block of ${look.network}`)
    if (look.from.height > look.to.height)
      wrong(`the last block of ${look.network} is before its first block`)
  }
  for (const each of assets) assertAsset(each, statement)
  const unique = (names: string[], what: string) => {
    if (new Set(names).size !== names.length) wrong(`the statement contains ${what} twice`)
  }
  unique(
    networks.map(({ network }) => network),
    'a network',
  )
  unique(
    assets.map(({ asset }) => asset),
    'an asset',
  )
  assertFields(holdings, ['addresses', 'sha256'], 'the holdings of the statement')
  if (!isCount(holdings.addresses) || !HASH.test(holdings.sha256))
    wrong('the statement does not commit to its holdings')
  return { statement, hash: sha256Hex(text as string) }
}

/**
 * Returns the bytes that each node signs: packages/signer/README.md, POST /attest.
 * @param hash of the statement, hex
 */
export const attestationText = (hash: string): string =>
  `custody/reserves/v1\n${JSON.stringify({ statement: hash })}`

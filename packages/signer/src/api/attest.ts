import { setImmediate as turn } from 'node:timers/promises'
import { addressAt, type WorkspaceKey } from '@custody/chains'
import { canonicalJson } from '@custody/request-auth'
import { z } from 'zod'
import { canonicalBytes, fromHex, sha256hex, signBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { NodeContext } from '../node-context.ts'
import { shaped } from '../transport/body.ts'

const STATEMENT_LENGTH_MAX = 1024 * 1024
const HOLDINGS_LENGTH_MAX = 8 * 1024 * 1024
const ADDRESSES_MAX = 10_000
/** Maximum age of a statement, in seconds. A node signs only statements about the present. */
const AGE_MAX_S = 900
/**
 * Number of addresses that are derived in one turn of the event loop, so that a long list does not
 * delay payments.
 */
const TURN = 5
const SUM_LIMIT = 1n << 128n

export const attestBodySchema = z.strictObject({
  statement: z.string().max(STATEMENT_LENGTH_MAX),
  holdings: z.string().max(HOLDINGS_LENGTH_MAX),
})

const hash = z.string().regex(/^[0-9a-f]{64}$/)
const amount = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,38})$/)
  .refine((text) => BigInt(text) < SUM_LIMIT)
const name = z.string().min(1).max(128)
const count = z.int().min(0)
const block = z.strictObject({ height: count, hash: name })
const statementSchema = z.strictObject({
  version: z.literal(1),
  kind: z.literal('proof-of-reserves'),
  id: z.uuid(),
  mode: name,
  time: z.iso.datetime(),
  networks: z.array(z.strictObject({ network: name, from: block, to: block })).max(1000),
  assets: z
    .array(
      z.strictObject({
        asset: name,
        network: name,
        decimals: count,
        held: amount,
        operating: amount,
        owed: amount,
        overdrawn: amount,
        arriving: amount,
        leaving: amount,
        leaves: count,
        depth: z.int().min(1).max(32),
        top: hash,
        root: hash,
      }),
    )
    .max(1000),
  holdings: z.strictObject({ addresses: count, sha256: hash }),
})
const holdingsSchema = z.strictObject({
  version: z.literal(1),
  id: z.uuid(),
  keys: z.array(
    z.strictObject({
      workspace: name,
      curve: z.enum(['secp256k1', 'ed25519']),
      key_id: name,
      public_key: name,
      chain_code: name,
      mode: name,
      epoch: count,
      certificates: z.array(z.strictObject({ node: z.int(), signature: name })).max(3),
    }),
  ),
  addresses: z
    .array(
      z.strictObject({
        workspace: name,
        network: name,
        address: name,
        path: z.array(z.int().min(0).max(0x7fff_ffff)).length(3),
        held: z
          .array(z.strictObject({ asset: name, form: z.enum(['balance', 'staked']), amount }))
          .min(1)
          .max(100),
      }),
    )
    .max(ADDRESSES_MAX),
})
type Holdings = z.infer<typeof holdingsSchema>

/**
 * Parses canonical JSON with a known schema.
 * @throws Refusal
 */
function read<T>(schema: z.ZodType<T>, text: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
    if (canonicalJson(value) !== text) value = undefined
  } catch {
    value = undefined
  }
  if (value === undefined) throw new Refusal('BAD_ORDER', 'The statement is not canonical JSON')
  return shaped(schema, value)
}

/**
 * Checks that every address is derived from a key that this node itself knows to be certified. Does
 * not call other nodes.
 */
async function assertDerived(
  { keyring, registry }: NodeContext,
  { addresses }: Holdings,
): Promise<Map<string, bigint>> {
  const keys = new Map<string, Pick<WorkspaceKey, 'publicKey' | 'chainCode'>>()
  const seen = new Set<string>()
  const sums = new Map<string, bigint>()
  for (const [at, { workspace, network: code, address, path, held }] of addresses.entries()) {
    if (at % TURN === TURN - 1) await turn()
    const network = registry.network(code)
    if (!network || path[1] !== network.chain_index)
      throw new Refusal('NETWORK_MISMATCH', `${address} does not match any path of ${code}`)
    if (seen.has(`${code} ${address}`)) throw new Refusal('BAD_ORDER', `${address} is listed twice`)
    seen.add(`${code} ${address}`)
    const key = JSON.stringify([workspace, network.curve])
    const existing = keys.get(key)
    const set = existing ? null : keyring.setOf(workspace, network.curve)
    if (!existing && !set)
      throw new Refusal(
        'KEY_NOT_READY',
        `This node has no certified ${network.curve} key of ${workspace}`,
      )
    const half = existing ?? {
      publicKey: fromHex(set!.public_key),
      chainCode: fromHex(set!.chain_code),
    }
    keys.set(key, half)
    if (addressAt(network, half, path) !== address) {
      throw new Refusal(
        'FOREIGN_PATH',
        `${address} is not at ${path.join('/')} of ${workspace}'s key`,
      )
    }
    const forms = new Set(held.map(({ asset, form }) => `${asset} ${form}`))
    if (
      forms.size !== held.length ||
      held.some(({ asset }) => registry.asset(asset)?.network !== code)
    ) {
      throw new Refusal('ASSET_MISMATCH', `${address} cannot hold the listed asset`)
    }
    for (const { asset, amount: there } of held)
      sums.set(asset, (sums.get(asset) ?? 0n) + BigInt(there))
  }
  return sums
}

/** Nodes that are checking a statement. */
const busy = new WeakSet<NodeContext>()

/**
 * Signs a statement of reserves with this node's identity key, under a separate tag: no key share
 * is used, and the signature authorises nothing. The node checks what it can verify itself: that
 * the text is such a statement, for this network and the current time; that every listed address is
 * derived from a key that it knows to be certified; and that the list adds up to the stated totals.
 * It queries no chain and has no ledger, so balances and liabilities are the platform's claims.
 */
export async function attest(
  parts: NodeContext,
  body: z.infer<typeof attestBodySchema>,
): Promise<unknown> {
  const { config, store } = parts
  const statement = read(statementSchema, body.statement)
  if (statement.mode !== config.mode)
    throw new Refusal('NETWORK_MISMATCH', `The statement is for the mode ${statement.mode}`)
  if (Math.abs(Date.parse(statement.time) / 1000 - store.seconds()) > AGE_MAX_S) {
    throw new Refusal(
      'TOO_OLD',
      `The statement is not current: its time and this node's differ by more than ${AGE_MAX_S} s`,
    )
  }
  const holdings = read(holdingsSchema, body.holdings)
  const { sha256, addresses } = statement.holdings
  if (
    sha256hex(body.holdings) !== sha256 ||
    holdings.id !== statement.id ||
    holdings.addresses.length !== addresses
  ) {
    throw new Refusal('BAD_ORDER', 'The statement commits to another list of addresses')
  }
  if (busy.has(parts))
    throw new Refusal('TOO_BUSY', 'Another statement is being checked; try again later')
  busy.add(parts)
  try {
    const sums = await assertDerived(parts, holdings)
    const stated = new Map(statement.assets.map(({ asset, held }) => [asset, BigInt(held)]))
    if (stated.size !== statement.assets.length)
      throw new Refusal('BAD_ORDER', 'An asset is listed twice')
    for (const asset of new Set([...sums.keys(), ...stated.keys()])) {
      if ((sums.get(asset) ?? 0n) === (stated.get(asset) ?? 0n)) continue
      throw new Refusal(
        'AMOUNT_MISMATCH',
        `The ${asset} balances in the list do not add up to the sum in the statement`,
      )
    }
  } finally {
    busy.delete(parts)
  }
  const signed = { statement: sha256hex(body.statement) }
  return {
    node: config.node,
    ...signed,
    signature: signBytes(config.identity, canonicalBytes('reserves', ['statement'], signed)),
  }
}

import { RpcUnavailable, type JsonRpc, type Signed } from '../rpc.ts'
import { BLOCKS_TO_LIVE } from './build.ts'
import { callAnyVersion } from './versions.ts'

const PAGE = 1000
/**
 * Maximum number of pages that are searched. An account with more transactions is not searched
 * completely, so flooding it only delays the result.
 */
const PAGES_MAX = 20
const SIGNATURE_BYTES = 64

interface Entry {
  signature: string
  slot: number
}
/** The last finalized block of a node. */
export interface Finalized {
  slot: number
  height: number
}

/** Reads slot and height in one response, so that both come from one node. */
export async function finalized(call: JsonRpc): Promise<Finalized> {
  const { absoluteSlot: slot, blockHeight: height } = await call<{
    absoluteSlot: number
    blockHeight: number
  }>('getEpochInfo', [{ commitment: 'finalized' }])
  if (!Number.isSafeInteger(slot) || !Number.isSafeInteger(height))
    throw new RpcUnavailable('getEpochInfo returned no slot or height')
  return { slot, height }
}

/** Returns the height of the block in a slot. */
async function heightOf(call: JsonRpc, slot: number): Promise<number> {
  const block = await callAnyVersion<{ blockHeight: number | null } | null>(
    call,
    'getBlock',
    slot,
    { commitment: 'finalized', transactionDetails: 'none', rewards: false },
  )
  if (typeof block?.blockHeight !== 'number')
    throw new RpcUnavailable(`the endpoint does not retain slot ${slot}`)
  return block.blockHeight
}

/**
 * Returns the message, which follows the signatures. The count of signatures takes one byte below
 * 128.
 */
function messageOf(raw: Buffer): string {
  return raw.subarray(1 + (raw[0] ?? 0) * SIGNATURE_BYTES).toString('hex')
}

/**
 * Searches an account's history for a message, whatever its signatures, from the end of its
 * lifetime back to before its beginning. Only a node that has a finalized block past that end may
 * answer.
 * @throws RpcUnavailable if the history does not reach back that far
 */
export async function findMessage(
  call: JsonRpc,
  account: string,
  message: string,
  validUntil: number,
): Promise<Signed | null> {
  const now = await finalized(call)
  if (now.height <= validUntil)
    throw new RpcUnavailable('the endpoint has not seen the expiry of the transaction yet')
  // A block takes one slot, and some slots have no block.
  const last = now.slot - (now.height - validUntil)
  let before: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const entries = await call<Entry[]>('getSignaturesForAddress', [
      account,
      {
        limit: PAGE,
        commitment: 'finalized',
        minContextSlot: now.slot,
        ...(before === undefined ? {} : { before }),
      },
    ])
    if (!Array.isArray(entries))
      throw new RpcUnavailable('getSignaturesForAddress returned no list')
    if (entries.length === 0) return null
    for (const { signature, slot } of entries) {
      if (slot > last) continue
      if (
        slot < last - BLOCKS_TO_LIVE &&
        (await heightOf(call, slot)) < validUntil - BLOCKS_TO_LIVE
      )
        return null
      const result = await callAnyVersion<{ transaction: [string, string] } | null>(
        call,
        'getTransaction',
        signature,
        { commitment: 'finalized', encoding: 'base64' },
      )
      if (!result)
        throw new RpcUnavailable('the endpoint does not return a transaction that it lists')
      const raw = Buffer.from(result.transaction[0], 'base64')
      if (messageOf(raw) === message) return { hash: signature, raw: raw.toString('hex') }
    }
    before = (entries.at(-1) as Entry).signature
  }
  throw new RpcUnavailable(`the history of ${account} is too long to be searched`)
}

import { sendersOf, type ChainTransfer } from '../rpc.ts'
import { addressIn, callerOf } from './logs.ts'

/** Position of the first payment of a contract in a transaction; the next ones count down. */
const FIRST_POSITION = -2
/**
 * Kinds of internal transactions (`note`) that move TRX. Others state an amount that does not move,
 * such as the stake whose energy a contract lends (`delegateResourceOfEnergy`). Source: java-tron,
 * org.tron.core.vm.program.Program.
 */
const MOVES = new Set(['call', 'suicide'])

/** Internal transaction of a node; every field may be absent or malformed. */
interface Internal {
  caller_address?: unknown
  transferTo_address?: unknown
  callValueInfo?: unknown
  note?: unknown
  rejected?: unknown
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const objectOf = <T extends object>(value: unknown): T =>
  (typeof value === 'object' && value !== null ? value : {}) as T

/** Decodes a note: nodes return its bytes in hex, and some providers as text. */
const noteOf = (note: unknown): string =>
  typeof note !== 'string'
    ? ''
    : /^(?:[0-9a-f]{2})+$/i.test(note)
      ? Buffer.from(note, 'hex').toString('utf8')
      : note

/** Returns the TRX of an internal transaction in sun; entries with a `tokenId` are other tokens. */
function amountOf(info: unknown): bigint {
  let amount = 0n
  for (const each of listOf(info)) {
    const { callValue, tokenId } = objectOf<{ callValue?: unknown; tokenId?: unknown }>(each)
    const isToken = tokenId !== undefined && tokenId !== null && tokenId !== ''
    if (!isToken && /^\d{1,19}$/.test(String(callValue))) amount += BigInt(String(callValue))
  }
  return amount
}

/**
 * Returns the TRX that contracts paid within a transaction that succeeded. They are claims of the
 * node, so what cannot be read is left out instead of refusing the block.
 * @param asset ticker of the native coin
 * @param owner `owner_address` of the transaction, which called the first contract
 */
export function framesOf(
  asset: string,
  { txid, owner, internal }: { txid: string; owner: unknown; internal: unknown },
): ChainTransfer[] {
  return listOf(internal).flatMap((entry, at): ChainTransfer[] => {
    const each = objectOf<Internal>(entry)
    const { transferTo_address: to, rejected } = each
    const amount = amountOf(each.callValueInfo)
    const isRejected = rejected !== undefined && rejected !== null && rejected !== false
    if (isRejected || amount === 0n || !MOVES.has(noteOf(each.note))) return []
    const address = partyOf(to)
    const sender = partyOf(each.caller_address)
    // A contract may call itself with a value.
    if (address === null || address === sender) return []
    return [
      {
        txid,
        position: FIRST_POSITION - at,
        asset,
        address,
        amount,
        sender,
        senders: sendersOf([sender, callerOf(owner)]),
        coinbase: false,
        frame: true,
      },
    ]
  })
}

/** Returns an address, with or without the prefix 41; null if it is none. */
function partyOf(hex: unknown): string | null {
  return typeof hex === 'string' && /^(?:41)?[0-9a-f]{40}$/i.test(hex) ? addressIn(hex) : null
}

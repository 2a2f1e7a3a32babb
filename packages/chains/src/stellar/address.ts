import type { Tags } from '../family.ts'
import type { Network, Validation } from '../types.ts'
import { isExplicit, readMemo } from './memo.ts'
import { ACCOUNT, decodeStrKey, encodeStrKey, MUXED } from './strkey.ts'

const KEY_BYTES = 32
const ID_BYTES = 8

/** Returns the G… address of an Ed25519 key. */
export function address(_network: Network, publicKey: Uint8Array): string {
  return encodeStrKey(ACCOUNT, publicKey)
}

/** Splits an M… address into its account and id; null for every other text. */
export function splitMuxed(text: string): { account: string; id: string } | null {
  const payload = decodeStrKey(MUXED, KEY_BYTES + ID_BYTES, text)
  if (payload === null) return null
  const id = new DataView(payload.buffer, payload.byteOffset + KEY_BYTES, ID_BYTES).getBigUint64(0)
  return { account: encodeStrKey(ACCOUNT, payload.subarray(0, KEY_BYTES)), id: id.toString() }
}

/** Returns the account that is paid: every M… address of an account belongs to the account's key. */
export const paymentKey = (_network: Network, text: string): string =>
  splitMuxed(text)?.account ?? text

/** Memos. An M… address contains its id. */
export const tags: Tags = {
  isWithin: (text) => splitMuxed(text) !== null,
  split(text) {
    const muxed = splitMuxed(text)
    return muxed && { address: muxed.account, tag: muxed.id }
  },
  isLike: isExplicit,
}

/**
 * Accepts G… and M… addresses (SEP-23). An M… address is paid in this form and accepts no separate
 * tag, because it contains its id. The result's tag is in its canonical spelling.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const memo = addressTag === undefined || addressTag === null ? null : readMemo(addressTag)
  if (memo && 'reason' in memo) return { valid: false, reason: memo.reason, field: 'address_tag' }
  if (text.startsWith('M')) {
    const muxed = splitMuxed(text)
    if (!muxed)
      return { valid: false, reason: 'is not an M… address: its checksum or length is wrong' }
    if (memo && memo.tag !== muxed.id) {
      return {
        valid: false,
        reason: `address_tag differs from the id ${muxed.id} inside the M… address`,
        field: 'address_tag',
      }
    }
    return { valid: true, address: text, address_tag: null }
  }
  if (/^S[A-Z2-7]{55}$/.test(text))
    return {
      valid: false,
      reason: 'is a secret key: anyone who sees it can move the account’s coins',
    }
  if (/^C[A-Z2-7]{55}$/.test(text))
    return { valid: false, reason: 'is a contract; only accounts (G…, M…) can be paid' }
  if (decodeStrKey(ACCOUNT, KEY_BYTES, text) === null) {
    return {
      valid: false,
      reason: 'is not a Stellar address: it starts with G (or M) and its checksum must match',
    }
  }
  return { valid: true, address: text, address_tag: memo ? memo.tag : null }
}

import type { xdr } from '@stellar/stellar-base'
import type { Network, Validation } from '../types.ts'
import { readMemo } from './memo.ts'
import { library } from './library.ts'

/** G… of an Ed25519 key. */
export function address(_network: Network, publicKey: Uint8Array): string {
  return library().StrKey.encodeEd25519PublicKey(Buffer.from(publicKey))
}

/** An M… address is an account with an id of its own; null for every other text. */
export function splitMuxed(text: string): { account: string; id: string } | null {
  if (!/^M[A-Z2-7]{68}$/.test(text) || !library().StrKey.isValidMed25519PublicKey(text)) return null
  const muxed = muxedOf(text)
  return { account: library().StrKey.encodeEd25519PublicKey(muxed.med25519().ed25519()), id: muxed.med25519().id().toString() }
}

/** The XDR of a G… or M… address. */
export const muxedOf = (text: string): xdr.MuxedAccount => library().decodeAddressToMuxedAccount(text, true)
/** The address of an XDR account, G… or M…. */
export const addressOf = (muxed: xdr.MuxedAccount): string => library().encodeMuxedAccountToAddress(muxed, true)

/**
 * G… and M… (SEP-23). An M… address is paid as it stands and takes no other tag: its id is inside.
 * The answer's tag is in its canonical spelling.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const memo = addressTag === undefined || addressTag === null ? null : readMemo(addressTag)
  if (memo && 'reason' in memo) return { valid: false, reason: memo.reason, field: 'address_tag' }
  if (text.startsWith('M')) {
    const muxed = splitMuxed(text)
    if (!muxed) return { valid: false, reason: 'is not an M… address: checksum or length does not match' }
    if (memo && memo.tag !== muxed.id) {
      return { valid: false, reason: `address_tag differs from the id ${muxed.id} inside the M… address`, field: 'address_tag' }
    }
    return { valid: true, address: text, address_tag: null }
  }
  if (/^S[A-Z2-7]{55}$/.test(text)) return { valid: false, reason: 'is a secret key: anyone who sees it can take the account’s coins' }
  if (/^C[A-Z2-7]{55}$/.test(text)) return { valid: false, reason: 'is a contract; only accounts (G…, M…) can be paid' }
  if (!/^G[A-Z2-7]{55}$/.test(text) || !library().StrKey.isValidEd25519PublicKey(text)) {
    return { valid: false, reason: 'is not a Stellar address: it starts with G (or M) and its checksum must match' }
  }
  return { valid: true, address: text, address_tag: memo ? memo.tag : null }
}

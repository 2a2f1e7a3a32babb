import { addressOfSecret, sha256 } from './address.ts'

/**
 * Address, in 42 digits, of a contract that pays the TRX of a call to the address in its data. It is
 * part of this chain and has no code, because contracts in the engine have no TRX.
 */
export const FORWARDER = addressOfSecret(sha256(Buffer.from('local Tron: the forwarder')))
/** Energy of a call of the forwarder: about that of a call with value to a new account. */
export const FORWARDER_ENERGY = 40_000

/** A payment within a transaction, as nodes report it. Addresses have 42 digits. */
export type Internal = { from: string; to: string; amount: bigint }

/** Returns the data of a call that pays an address. */
export const forwardData = (to: string): string => to.slice(2).padStart(64, '0')

/** Returns the address that a call pays; undefined if the call would revert. */
export function forwardedTo(data: string): string | undefined {
  return /^0{24}[0-9a-f]{40}$/.test(data) ? `41${data.slice(24)}` : undefined
}

import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import { refusedTag } from '../assertions.ts'
import { ChainError, type Network, type Validation } from '../types.ts'

export const SYSTEM_PROGRAM = '11111111111111111111111111111111'
export const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111'
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
export const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'

const KEY_BYTES = 32
const BUMP_MAX = 255

/**
 * Returns the 32 bytes of an address.
 * @throws ChainError `ADDRESS`
 */
export function keyOf(text: string): Uint8Array {
  let bytes: Uint8Array
  try {
    bytes = base58.decode(text)
  } catch {
    throw new ChainError('ADDRESS', 'is not a Solana address')
  }
  if (bytes.length !== KEY_BYTES)
    throw new ChainError('ADDRESS', 'is not a Solana address: it does not have 32 bytes')
  return bytes
}

/**
 * Returns true for a public key that can have a private key. A program's derived address is never
 * on the curve.
 */
function isOnCurve(key: Uint8Array): boolean {
  try {
    // The lenient mode matches the chain's own check.
    ed25519.Point.fromBytes(key, true)
    return true
  } catch {
    return false
  }
}

const DERIVED = utf8ToBytes('ProgramDerivedAddress')
const tokenAccounts = new Map<string, string>()
const TOKEN_ACCOUNTS_MAX = 10_000

/** Returns the associated token account of an owner, which contains its tokens of one mint. */
export function tokenAccountOf(owner: string, mint: string): string {
  const name = `${owner} ${mint}`
  const existing = tokenAccounts.get(name)
  if (existing !== undefined) return existing
  const seeds = [keyOf(owner), keyOf(TOKEN_PROGRAM), keyOf(mint)]
  for (let bump = BUMP_MAX; bump >= 0; bump--) {
    const candidate = sha256(
      concatBytes(...seeds, Uint8Array.of(bump), keyOf(ASSOCIATED_TOKEN_PROGRAM), DERIVED),
    )
    if (isOnCurve(candidate)) continue
    const account = base58.encode(candidate)
    if (tokenAccounts.size >= TOKEN_ACCOUNTS_MAX) tokenAccounts.clear()
    tokenAccounts.set(name, account)
    return account
  }
  throw new ChainError('ADDRESS', 'has no associated token account')
}

/** Returns the address of a key, which is the Ed25519 key itself. */
export function address(_network: Network, publicKey: Uint8Array): string {
  return base58.encode(publicKey)
}

/**
 * Accepts addresses of wallets only. An address off the curve is a program or a token account, and
 * coins sent there may be lost.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text))
    return { valid: false, reason: 'is not a Solana address: 32 to 44 characters of base58' }
  let key: Uint8Array
  try {
    key = keyOf(text)
  } catch {
    return { valid: false, reason: 'is not a Solana address: it does not have 32 bytes' }
  }
  if (text === SYSTEM_PROGRAM)
    return { valid: false, reason: 'is the System program; coins sent there are lost' }
  if (!isOnCurve(key)) {
    return {
      valid: false,
      reason:
        'is not the address of a wallet but one that a program derived, such as a token account; use the address of its owner',
    }
  }
  return { valid: true, address: text, address_tag: null }
}

import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import {
  address,
  getAddressDecoder,
  getAddressEncoder,
  type Address,
  type EncodedAccount,
} from '@solana/kit'
import { SOLANA_TOKENS } from './tokens.ts'

const SYSTEM_PROGRAM = address('11111111111111111111111111111111')
export const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
export const GENESIS_HASH = base58(digest('custody local network solana'))
/** 2026-01-01. */
export const GENESIS_TIME = 1_767_225_600

const FAUCET_LAMPORTS = 5n * 10n ** 17n
const MINT_RENT = 1_461_600n

/** Private keys that are used only by this local chain. */
export const FAUCET_KEY = digest('custody local network solana faucet')
export const FAUCET = base58(ed25519.getPublicKey(FAUCET_KEY)) as Address

export function digest(...parts: (string | Uint8Array)[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Encodes 32 bytes as an address or a blockhash. */
export function base58(bytes: Uint8Array): string {
  return getAddressDecoder().decode(bytes)
}

/**
 * Returns the accounts that exist before the first block: the faucet's coins, and the mints of
 * tokens with the faucet as authority.
 */
export function genesisAccounts(): EncodedAccount[] {
  const accounts: EncodedAccount[] = [
    account(FAUCET, FAUCET_LAMPORTS, SYSTEM_PROGRAM, new Uint8Array()),
  ]
  for (const { mint, decimals } of SOLANA_TOKENS) {
    const data = Buffer.alloc(82)
    data.writeUInt32LE(1, 0)
    data.set(getAddressEncoder().encode(FAUCET), 4)
    data.writeBigUInt64LE(0n, 36)
    data[44] = decimals
    data[45] = 1
    accounts.push(account(mint as Address, MINT_RENT, TOKEN_PROGRAM, data))
  }
  return accounts
}

function account(
  at: Address,
  lamports: bigint,
  programAddress: Address,
  data: Uint8Array,
): EncodedAccount {
  return {
    address: at,
    lamports: lamports as EncodedAccount['lamports'],
    programAddress,
    data,
    executable: false,
    space: BigInt(data.length),
  }
}

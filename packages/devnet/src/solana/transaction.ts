import { ed25519 } from '@noble/curves/ed25519.js'
import {
  getAddressEncoder,
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  type Address,
  type Transaction,
} from '@solana/kit'
import type { FailedTransactionMetadata } from 'litesvm'

/** A transaction as it was sent, with its parsed content. */
export interface Read {
  raw: string
  transaction: Transaction
  signature: string
  keys: Address[]
  signers: number
  blockhash: string
  message: string
}

/** A transaction was rejected. The message is a node's text, and `err` the runtime's error. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken'
  readonly err: unknown

  constructor(message: string, err: unknown = null) {
    super(message)
    this.err = err
  }
}

/**
 * Returns the runtime's error in the JSON format of production nodes. The error of an instruction
 * is only in the text.
 */
export function errorOf(text: string): unknown {
  const rent = /^InsufficientFundsForRent \{ account_index: (\d+)/.exec(text)
  if (rent) return { InsufficientFundsForRent: { account_index: Number(rent[1]) } }
  const instruction = /^InstructionError\((\d+), (?:Custom\((\d+)\)|(\w+))/.exec(text)
  if (instruction) {
    return {
      InstructionError: [
        Number(instruction[1]),
        instruction[2] === undefined ? instruction[3] : { Custom: Number(instruction[2]) },
      ],
    }
  }
  return /^\w+/.exec(text)?.[0] ?? 'UnsupportedVersion'
}

/**
 * Parses a transaction.
 * @throws Error if the bytes are not a transaction with a blockhash
 */
export function read(raw: string): Read {
  const transaction = getTransactionDecoder().decode(Buffer.from(raw, 'base64'))
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
  if (!('staticAccounts' in message) || !('lifetimeToken' in message))
    throw new Error('is of a version without blockhash')
  const [first] = Object.values(transaction.signatures)
  return {
    raw,
    transaction,
    keys: [...message.staticAccounts],
    signers: message.header.numSignerAccounts,
    blockhash: message.lifetimeToken as string,
    signature: first ? getBase58Decoder().decode(first) : '',
    message: Buffer.from(transaction.messageBytes as unknown as Uint8Array).toString('base64'),
  }
}

/** Returns whether every signer has signed, in the order of the accounts. */
export function verifies({ transaction, signers, keys }: Read): boolean {
  const signatures = Object.entries(transaction.signatures)
  return (
    signatures.length === signers &&
    signatures.every(([signer, signature], index) => {
      if (signer !== keys[index] || !signature) return false
      try {
        return ed25519.verify(
          signature,
          new Uint8Array(transaction.messageBytes),
          new Uint8Array(getAddressEncoder().encode(signer as Address)),
          { zip215: false },
        )
      } catch {
        return false
      }
    })
  )
}

/** Returns the runtime's description of a failure. */
export function describe(failed: FailedTransactionMetadata): string {
  const text = failed.toString().replace(/\s+/g, ' ')
  return (/err: ([^]*?), meta/.exec(text)?.[1] ?? text).slice(0, 200)
}

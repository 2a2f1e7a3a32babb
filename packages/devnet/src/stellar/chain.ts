import { ed25519 } from '@noble/curves/ed25519.js'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { LedgerChain } from '../ledger-chain.ts'
import { OfLedgers } from '../ledger-local.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import { contractCall } from './contract.ts'
import {
  BASE_FEE,
  readTransaction,
  ROOT,
  ROOT_KEY,
  ROOT_PUBLIC,
  stellarRules,
  type Account,
  type Outcome,
  type StellarTransaction,
} from './rules.ts'
import { readKey } from './strkey.ts'
import { encode } from './xdr.ts'

const DECIMALS = 7
const TEXT_BYTES_MAX = 28

/** The local Stellar network: a ledger of our own with the Stellar RPC protocol. */
export class StellarChain extends OfLedgers<Account, StellarTransaction, Outcome> {
  static async open(home: string, timing: Timing = REAL_TIME): Promise<StellarChain> {
    return new StellarChain(LedgerChain.open(stellarRules, home, timing))
  }

  fund(address: unknown, amount: unknown, tag: unknown): string {
    const to = typeof address === 'string' ? readKey(address) : undefined
    if (!to) throw new RequestError(`address ${JSON.stringify(address)} is not an address of XLM`)
    const stroops = parseAmount(amount, DECIMALS)
    const exists = this.ledgers.open.get(to.account) !== undefined
    if (!exists && to.id !== null)
      throw new RequestError(
        `address ${String(address)}: the account behind an M… address must exist first`,
      )
    const body = exists
      ? { payment: { destination: address, asset: 'native', amount: stroops.toString() } }
      : { create_account: { destination: address, starting_balance: stroops.toString() } }
    return this.#send(body, memoOf(tag))
  }

  /** Lets a contract pay in the next ledger. Returns the hash of the call. */
  payByContract(address: unknown, amount: unknown): string {
    const to = typeof address === 'string' ? readKey(address) : undefined
    if (!to) throw new RequestError(`address ${JSON.stringify(address)} is not an address of XLM`)
    return this.#send(contractCall(String(address), parseAmount(amount, DECIMALS)), 'none')
  }

  /** Sends an operation of the root account, and closes the ledger. */
  #send(body: object, memo: unknown): string {
    const tx = {
      source_account: ROOT,
      fee: Number(BASE_FEE),
      seq_num: (this.ledgers.open.get(ROOT)!.sequence + 1n).toString(),
      cond: 'none',
      memo,
      ext: 'v0',
      operations: [{ source_account: null, body }],
    }
    const { hash } = readTransaction(encode('TransactionEnvelope', { tx: { tx, signatures: [] } }))
    const signature = Buffer.from(ed25519.sign(Buffer.from(hash, 'hex'), ROOT_KEY)).toString('hex')
    const signed = readTransaction(
      encode('TransactionEnvelope', {
        tx: { tx, signatures: [{ hint: ROOT_PUBLIC.subarray(-4).toString('hex'), signature }] },
      }),
    )
    const { verdict, outcome } = this.ledgers.submit(signed)
    if (verdict !== 'in') throw new Error(`the faucet's payment was refused: ${outcome.code}`)
    this.ledgers.close()
    if (outcome.code !== 'tx_success')
      throw new RequestError(`the faucet's payment failed: ${JSON.stringify(outcome.operations)}`)
    return signed.hash
  }
}

/**
 * Parses a tag: digits are a memo id, `hash:` and `return:` their kinds, everything else a text.
 */
function memoOf(tag: unknown): unknown {
  if (tag === null || tag === undefined) return 'none'
  const text = String(tag)
  if (/^(0|[1-9]\d{0,19})$/.test(text) && BigInt(text) < 1n << 64n) return { id: text }
  const [, kind, hex] = /^(hash|return):([0-9a-fA-F]{64})$/.exec(text) ?? []
  if (kind) return { [kind]: hex }
  const plain = text.replace(/^text:/, '')
  if (plain === '' || Buffer.byteLength(plain) > TEXT_BYTES_MAX) {
    throw new RequestError(
      `tag ${JSON.stringify(tag)} is not a memo: a text has 1 to ${TEXT_BYTES_MAX} bytes`,
    )
  }
  return { text: plain }
}

import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import type { Included, Ledger, Rules, Verdict, View } from '../ledger-chain.ts'
import { CALLED, contractPaymentOf } from './contract.ts'
import { encodeKey, readKey } from './strkey.ts'
import { decode, encode, encodeBytes } from './xdr.ts'

export const PASSPHRASE = 'Custody Local Network ; 2026'
export const PROTOCOL = 23
export const BASE_FEE = 100n
export const BASE_RESERVE = 5_000_000n
export const TOTAL = 10n ** 18n

/** As on every Stellar network, the root account's key follows from the passphrase. */
const sha256 = (...parts: (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
export const NETWORK_ID = sha256(PASSPHRASE)
export const ROOT_KEY = NETWORK_ID
export const ROOT_PUBLIC = Buffer.from(ed25519.getPublicKey(ROOT_KEY))
export const ROOT = encodeKey('G', ROOT_PUBLIC)

export type Account = {
  balance: bigint
  sequence: bigint
  data: Record<string, string>
  changed: number
}
/** The reference library's JSON of a transaction, limited to the fields that are read here. */
type Body = {
  source_account: string
  fee: number
  seq_num: string
  cond:
    | 'none'
    | { time: { min_time: string; max_time: string } }
    | {
        v2: { time_bounds?: { min_time: string; max_time: string } | null } & Record<
          string,
          unknown
        >
      }
  memo: unknown
  operations: { source_account: string | null; body: Record<string, Record<string, string>> }[]
  ext: unknown
}
export type StellarTransaction = {
  hash: string
  raw: string
  body: Body
  signatures: { hint: string; signature: string }[]
  account: string
}
export type Outcome = { code: string; fee: bigint; operations: unknown[] | null }
export type StellarLedger = Ledger<StellarTransaction, Outcome>

export class NotATransaction extends Error {}

/**
 * Parses a transaction. The signed bytes are the network, the envelope type and the transaction as
 * the reference library encodes it.
 */
export function readTransaction(base64: string): StellarTransaction {
  let envelope: { tx?: { tx: Body; signatures: StellarTransaction['signatures'] } }
  try {
    envelope = decode('TransactionEnvelope', base64)
  } catch (error) {
    throw new NotATransaction(error instanceof Error ? error.message : String(error))
  }
  if (!envelope.tx) throw new NotATransaction('only envelopes of version 1 are served here')
  const { tx: body, signatures } = envelope.tx
  const source = readKey(body.source_account)
  if (!source) throw new NotATransaction('a source that is no account')
  const hash = sha256(
    NETWORK_ID,
    Buffer.from([0, 0, 0, 2]),
    encodeBytes('Transaction', body),
  ).toString('hex')
  return { hash, raw: base64, body, signatures, account: source.account }
}

const FAILED: Record<string, string> = {
  opNOT_SUPPORTED: 'op_not_supported',
  opBAD_AUTH: 'op_bad_auth',
}
const reserveOf = (account: Account): bigint =>
  (2n + BigInt(Object.keys(account.data).length)) * BASE_RESERVE

/** Runs core's checks in its order. Undefined: the transaction is valid at this position. */
function invalid(
  view: View<Account>,
  tx: StellarTransaction,
  time: number,
): { code: string; verdict: Verdict } | undefined {
  const { body, account } = tx
  const never = (code: string) => ({ code, verdict: 'never' as const })
  if (body.operations.length === 0) return never('tx_missing_operation')
  const bounds =
    body.cond === 'none' ? null : 'time' in body.cond ? body.cond.time : body.cond.v2.time_bounds
  if (bounds && BigInt(bounds.min_time) > BigInt(time)) return never('tx_too_early')
  if (bounds && bounds.max_time !== '0' && BigInt(bounds.max_time) < BigInt(time))
    return never('tx_too_late')
  if (BigInt(body.fee) < BASE_FEE * BigInt(body.operations.length))
    return never('tx_insufficient_fee')
  const source = view.get(account)
  if (!source) return never('tx_no_account')
  if (BigInt(body.seq_num) !== source.sequence + 1n) return never('tx_bad_seq')
  const key = readKey(account)!.key
  const signed = tx.signatures.filter(
    ({ hint, signature }) =>
      hint === key.subarray(-4).toString('hex') && verifies(signature, tx.hash, key),
  )
  if (signed.length === 0) return never('tx_bad_auth')
  if (signed.length !== tx.signatures.length) return never('tx_bad_auth_extra')
  if (source.balance - reserveOf(source) < BigInt(body.fee)) return never('tx_insufficient_balance')
  return undefined
}

function verifies(signature: string, hash: string, key: Buffer): boolean {
  try {
    return ed25519.verify(Buffer.from(signature, 'hex'), Buffer.from(hash, 'hex'), key, {
      zip215: false,
    })
  } catch {
    return false
  }
}

function apply(
  view: View<Account>,
  tx: StellarTransaction,
  { index, time }: { index: number; time: number },
): { verdict: Verdict; outcome: Outcome } {
  const fault = invalid(view, tx, time)
  if (fault)
    return { verdict: fault.verdict, outcome: { code: fault.code, fee: 0n, operations: null } }
  const { account, body } = tx
  const source = view.get(account)!
  const fee = BASE_FEE * BigInt(body.operations.length)
  const paid = {
    ...source,
    balance: source.balance - fee,
    sequence: source.sequence + 1n,
    changed: index,
  }
  // Either all operations are applied or none.
  const scratch = new Map<string, Account>([[account, paid]])
  const get = (key: string) => scratch.get(key) ?? view.get(key)
  const results: unknown[] = []
  let good = true
  for (const operation of body.operations) {
    const by =
      operation.source_account === null ? account : readKey(operation.source_account)?.account
    const result =
      by === account ? operate(get, scratch, account, operation.body, index) : FAILED['opBAD_AUTH']
    good &&= typeof result === 'object'
    results.push(result)
  }
  if (good) for (const [key, value] of scratch) view.set(key, value)
  else view.set(account, paid)
  return {
    verdict: 'in',
    outcome: {
      code: good ? 'tx_success' : 'tx_failed',
      fee,
      operations: results.map((result) =>
        typeof result === 'object' ? (result as { ok: unknown }).ok : named(result as string),
      ),
    },
  }
}

/** Returns the result of a text: `payment:underfunded` is the failure of that operation. */
function named(result: string): unknown {
  const [operation, code] = result.split(':')
  return code === undefined ? operation : { op_inner: { [operation!]: code } }
}

function operate(
  get: (key: string) => Account | undefined,
  set: Map<string, Account>,
  from: string,
  body: Record<string, Record<string, string>>,
  index: number,
): { ok: unknown } | string {
  const source = get(from)!
  const free = source.balance - reserveOf(source)
  const payment = body['payment']
  const create = body['create_account']
  const data = body['manage_data']
  const called = contractPaymentOf(body)
  if (create) {
    const amount = BigInt(create['starting_balance']!)
    const to = create['destination']!
    if (amount < 0n || to === from) return 'create_account:malformed'
    if (get(to)) return 'create_account:already_exist'
    if (amount < 2n * BASE_RESERVE) return 'create_account:low_reserve'
    if (free < amount) return 'create_account:underfunded'
    set.set(from, { ...source, balance: source.balance - amount, changed: index })
    set.set(to, { balance: amount, sequence: BigInt(index) << 32n, data: {}, changed: index })
    return { ok: { op_inner: { create_account: 'success' } } }
  }
  if (payment) {
    const to = readKey(payment['destination']!)?.account
    const amount = BigInt(payment['amount']!)
    if (!to || amount <= 0n) return 'payment:malformed'
    if ((payment['asset'] as unknown) !== 'native') return 'payment:no_trust'
    const target = get(to)
    if (!target) return 'payment:no_destination'
    if (free < amount) return 'payment:underfunded'
    if (to !== from) transfer(set, { from, source, to, target }, amount, index)
    return { ok: { op_inner: { payment: 'success' } } }
  }
  if (called) return callContract(get, set, from, called, index)
  if (data) return writeData(set, from, source, { data, index })
  return FAILED['opNOT_SUPPORTED']!
}

function callContract(
  get: (key: string) => Account | undefined,
  set: Map<string, Account>,
  from: string,
  { to: address, amount }: { to: string; amount: bigint },
  index: number,
): { ok: unknown } | string {
  const source = get(from)!
  const to = readKey(address)?.account ?? ''
  const target = get(to)
  if (to === from || !target || source.balance - reserveOf(source) < amount)
    return 'invoke_host_function:trapped'
  transfer(set, { from, source, to, target }, amount, index)
  return { ok: CALLED }
}

function transfer(
  set: Map<string, Account>,
  { from, source, to, target }: { from: string; source: Account; to: string; target: Account },
  amount: bigint,
  index: number,
): void {
  set.set(from, { ...source, balance: source.balance - amount, changed: index })
  set.set(to, { ...target, balance: target.balance + amount, changed: index })
}

function writeData(
  set: Map<string, Account>,
  from: string,
  source: Account,
  { data, index }: { data: Record<string, string>; index: number },
): { ok: unknown } | string {
  const name = data['data_name']!
  const { [name]: _, ...rest } = source.data
  const value = data['data_value']
  const next = {
    ...source,
    data: value === undefined || value === null ? rest : { ...rest, [name]: value },
    changed: index,
  }
  if (source.balance < reserveOf(next)) return 'manage_data:low_reserve'
  set.set(from, next)
  return { ok: { op_inner: { manage_data: 'success' } } }
}

export function resultXdr(outcome: Outcome): string {
  return encode('TransactionResult', {
    fee_charged: outcome.fee.toString(),
    result: outcome.operations === null ? outcome.code : { [outcome.code]: outcome.operations },
    ext: 'v0',
  })
}

const ZERO = '0'.repeat(64)
const value = (time: number) => ({
  tx_set_hash: ZERO,
  close_time: String(time),
  upgrades: [],
  ext: 'basic',
})

/** Encodes the ledger's header as the protocol prescribes. Its SHA-256 is the ledger's hash. */
export function header({
  index,
  time,
  parent,
  transactions,
}: Omit<StellarLedger, 'hash'>): unknown {
  return {
    ledger_version: PROTOCOL,
    previous_ledger_hash: parent,
    scp_value: { ...value(time), tx_set_hash: setHash(transactions) },
    tx_set_result_hash: sha256(...transactions.map(({ outcome }) => resultXdr(outcome))).toString(
      'hex',
    ),
    bucket_list_hash: ZERO,
    ledger_seq: index,
    total_coins: TOTAL.toString(),
    fee_pool: '0',
    inflation_seq: 0,
    id_pool: '0',
    base_fee: Number(BASE_FEE),
    base_reserve: Number(BASE_RESERVE),
    max_tx_set_size: 1000,
    skip_list: [ZERO, ZERO, ZERO, ZERO],
    ext: 'v0',
  }
}

function setHash(transactions: readonly Included<StellarTransaction, Outcome>[]): string {
  return sha256(...transactions.map(({ tx }) => Buffer.from(tx.hash, 'hex'))).toString('hex')
}

export const stellarRules: Rules<Account, StellarTransaction, Outcome> = {
  code: 'XLM',
  genesisTime: 1_700_000_000,
  genesis: () => new Map([[ROOT, { balance: TOTAL, sequence: 0n, data: {}, changed: 1 }]]),
  read: readTransaction,
  apply,
  hash: (ledger) => sha256(encodeBytes('LedgerHeader', header(ledger))).toString('hex'),
}

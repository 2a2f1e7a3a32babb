import { formatAmount } from '../amount.ts'
import type { Place } from '../ledger-chain.ts'
import { contractPaymentOf } from './contract.ts'
import { headerXdr, metaOf } from './rpc.ts'
import {
  BASE_FEE,
  BASE_RESERVE,
  PROTOCOL,
  resultXdr,
  TOTAL,
  type Account,
  type Outcome,
  type StellarLedger,
  type StellarTransaction,
} from './rules.ts'
import { readKey } from './strkey.ts'
import { toid } from './toid.ts'

export type HorizonRecord = Record<string, unknown> & { paging_token: string }
export type StellarPlace = Place<StellarTransaction, Outcome>

const coins = (stroops: bigint | string): string => formatAmount(BigInt(stroops), 7)
const when = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')
const link = (href: string, templated = false) => (templated ? { href, templated } : { href })
const paged = (href: string) => link(`${href}{?cursor,limit,order}`, true)
const ACCOUNT_FLAGS = {
  auth_required: false,
  auth_revocable: false,
  auth_immutable: false,
  auth_clawback_enabled: false,
}

/** Returns an account as Horizon does. `base` is the URL below which Horizon's paths are. */
export function accountRecord(
  base: string,
  id: string,
  account: Account,
  time: number,
): HorizonRecord {
  const self = `${base}/accounts/${id}`
  return {
    _links: {
      self: link(self),
      transactions: paged(`${self}/transactions`),
      operations: paged(`${self}/operations`),
      payments: paged(`${self}/payments`),
      data: link(`${self}/data/{key}`, true),
    },
    id,
    account_id: id,
    sequence: account.sequence.toString(),
    subentry_count: Object.keys(account.data).length,
    last_modified_ledger: account.changed,
    last_modified_time: when(time),
    thresholds: { low_threshold: 0, med_threshold: 0, high_threshold: 0 },
    flags: ACCOUNT_FLAGS,
    balances: [
      {
        balance: coins(account.balance),
        buying_liabilities: coins(0n),
        selling_liabilities: coins(0n),
        asset_type: 'native',
      },
    ],
    signers: [{ weight: 1, key: id, type: 'ed25519_public_key' }],
    data: Object.fromEntries(
      Object.entries(account.data).map(([name, hex]) => [name, base64(hex)]),
    ),
    num_sponsoring: 0,
    num_sponsored: 0,
    paging_token: id,
  }
}

export function ledgerRecord(base: string, ledger: StellarLedger): HorizonRecord {
  const self = `${base}/ledgers/${ledger.index}`
  const good = ledger.transactions.filter(({ outcome }) => outcome.code === 'tx_success')
  return {
    _links: {
      self: link(self),
      transactions: paged(`${self}/transactions`),
      operations: paged(`${self}/operations`),
      payments: paged(`${self}/payments`),
    },
    id: ledger.hash,
    paging_token: (BigInt(ledger.index) << 32n).toString(),
    hash: ledger.hash,
    prev_hash: ledger.parent,
    sequence: ledger.index,
    successful_transaction_count: good.length,
    failed_transaction_count: ledger.transactions.length - good.length,
    operation_count: good.reduce((sum, { tx }) => sum + tx.body.operations.length, 0),
    closed_at: when(ledger.time),
    total_coins: coins(TOTAL),
    fee_pool: coins(0n),
    base_fee_in_stroops: Number(BASE_FEE),
    base_reserve_in_stroops: Number(BASE_RESERVE),
    max_tx_set_size: 1000,
    protocol_version: PROTOCOL,
    header_xdr: headerXdr(ledger),
  }
}

/** Returns `text`, `id`, `hash` and `return` as the reference library prints them. */
function memoOf(memo: unknown): Record<string, string> {
  if (typeof memo !== 'object' || memo === null) return { memo_type: 'none' }
  const [[kind, value] = ['none', '']] = Object.entries(memo as Record<string, string>)
  if (kind === 'text')
    return { memo_type: 'text', memo: value, memo_bytes: Buffer.from(value).toString('base64') }
  return kind === 'id'
    ? { memo_type: 'id', memo: String(value) }
    : { memo_type: kind, memo: base64(value) }
}

export function transactionRecord(
  base: string,
  { tx, outcome, ledger, order }: StellarPlace,
): HorizonRecord {
  const self = `${base}/transactions/${tx.hash}`
  const { body } = tx
  return {
    _links: {
      self: link(self),
      account: link(`${base}/accounts/${tx.account}`),
      ledger: link(`${base}/ledgers/${ledger.index}`),
      operations: paged(`${self}/operations`),
      transaction: link(self),
    },
    id: tx.hash,
    paging_token: toid(ledger.index, order).toString(),
    successful: outcome.code === 'tx_success',
    hash: tx.hash,
    ledger: ledger.index,
    created_at: when(ledger.time),
    source_account: tx.account,
    source_account_sequence: body.seq_num,
    fee_account: tx.account,
    fee_charged: outcome.fee.toString(),
    max_fee: String(body.fee),
    operation_count: body.operations.length,
    envelope_xdr: tx.raw,
    result_xdr: resultXdr(outcome),
    result_meta_xdr: metaOf({ tx, outcome }).meta,
    fee_meta_xdr: 'AAAAAA==',
    ...memoOf(body.memo),
    signatures: tx.signatures.map(({ signature }) => base64(signature)),
  }
}

const accountOf = (text: string | undefined): string => readKey(text ?? '')?.account ?? ''

/** A muxed account is returned as its underlying account, and also in its own form. */
function party(name: string, text: string): Record<string, string> {
  const read = readKey(text)
  return {
    [name]: read?.account ?? text,
    ...(read?.id === null || read === undefined
      ? {}
      : { [`${name}_muxed`]: text, [`${name}_muxed_id`]: read.id.toString() }),
  }
}

const callRecord = ({ to, amount }: { to: string; amount: bigint }) => ({
  type: 'invoke_host_function',
  type_i: 24,
  function: 'HostFunctionTypeHostFunctionTypeInvokeContract',
  asset_balance_changes: [
    { asset_type: 'native', type: 'transfer', ...party('to', to), amount: coins(amount) },
  ],
})

const createRecord = (body: Record<string, string>, source: string) => ({
  type: 'create_account',
  type_i: 0,
  starting_balance: coins(body['starting_balance'] as string),
  ...party('funder', source),
  account: body['destination'],
})

/** Returns the operations of one transaction, each with the accounts that it concerns. */
export function operationRecords(
  base: string,
  place: StellarPlace,
): { record: HorizonRecord; accounts: string[]; isPayment: boolean }[] {
  const { tx, outcome, ledger, order } = place
  return tx.body.operations.map((operation, at) => {
    const source = operation.source_account ?? tx.body.source_account
    const id = toid(ledger.index, order, at).toString()
    const self = `${base}/operations/${id}`
    const common = {
      _links: { self: link(self), transaction: link(`${base}/transactions/${tx.hash}`) },
      id,
      paging_token: id,
      transaction_successful: outcome.code === 'tx_success',
      ...party('source_account', source),
      created_at: when(ledger.time),
      transaction_hash: tx.hash,
    }
    const { payment, create_account: create, manage_data: data } = operation.body
    if (payment) {
      const record = {
        ...common,
        type: 'payment',
        type_i: 1,
        asset_type: 'native',
        ...party('from', source),
        ...party('to', payment['destination'] as string),
        amount: coins(payment['amount'] as string),
      }
      return {
        record,
        accounts: [accountOf(source), accountOf(payment['destination'])],
        isPayment: true,
      }
    }
    if (create) {
      const record = { ...common, ...createRecord(create, source) }
      return {
        record,
        accounts: [accountOf(source), accountOf(create['destination'])],
        isPayment: true,
      }
    }
    const called = contractPaymentOf(operation.body)
    if (called) {
      const accounts = [accountOf(source), accountOf(called.to)]
      return { record: { ...common, ...callRecord(called) }, accounts, isPayment: true }
    }
    const record = {
      ...common,
      type: 'manage_data',
      type_i: 10,
      name: data?.['data_name'],
      value: data?.['data_value'] ? base64(data['data_value']) : '',
    }
    return { record, accounts: [accountOf(source)], isPayment: false }
  })
}

import type { xdr } from '@stellar/stellar-base'
import type { Network } from '../types.ts'
import { splitMuxed } from './address.ts'
import { library } from './library.ts'

/** Fields of a transaction in `getTransactions` that contain its events. */
export interface EventsInfo {
  /** Absent before version 23 of Stellar RPC. */
  events?: { contractEventsXdr?: string[][] | null } | null
  resultMetaXdr?: string
}

/** Native coin that a contract moved to an account, in stroops. */
export interface ContractPayment {
  /** Paying account or contract. */
  from: string
  /** Paid account. */
  to: string
  amount: bigint
  /** Id of the muxed address that was paid; null if it was a plain one. */
  id: string | null
}

/**
 * Returns the native coin that a successful contract call moved to accounts: the events of the native
 * coin's built-in contract, which no other contract can emit (CAP-46-6, CAP-67).
 */
export function contractPayments(network: Network, info: EventsInfo): ContractPayment[] {
  const { Asset, StrKey } = library()
  const native = StrKey.decodeContract(Asset.native().contractId(network.passphrase ?? ''))
  return eventsOf(info, native).flatMap((event): ContractPayment[] => {
    const body = event.body().v0()
    const data = body.data()
    const [name, from, to] = body.topics()
    if (textOf(name) !== 'transfer' || !from || !to) return []
    const paid = splitMuxed(addressOf(to)) ?? { account: addressOf(to), id: null }
    const amount = amountOf(data)
    if (!StrKey.isValidEd25519PublicKey(paid.account) || amount <= 0n) return []
    return [{ from: addressOf(from), to: paid.account, amount, id: paid.id ?? idOf(data) }]
  })
}

/** Returns the events of one contract. Other events are not decoded. */
function eventsOf(info: EventsInfo, contract: Buffer): xdr.ContractEvent[] {
  const { xdr: types } = library()
  const listed = info.events?.contractEventsXdr
  const all = listed
    ? listed
        .flat()
        .filter((each) => Buffer.from(each, 'base64').includes(contract))
        .map((each) => types.ContractEvent.fromXDR(each, 'base64'))
    : ofMeta(info.resultMetaXdr, contract)
  return all.filter((event) => {
    const id = event.contractId() as Buffer | null
    return id !== null && Buffer.from(id).equals(contract)
  })
}

/**
 * Returns the events of a transaction's meta, if it mentions the contract.
 * @throws Error if the meta is missing or cannot be decoded
 */
function ofMeta(meta: string | undefined, contract: Buffer): xdr.ContractEvent[] {
  if (meta === undefined) throw new Error('a contract call without resultMetaXdr')
  const bytes = Buffer.from(meta, 'base64')
  if (!bytes.includes(contract)) return []
  const decoded = library().xdr.TransactionMeta.fromXDR(bytes)
  switch (decoded.switch()) {
    case 3:
      return decoded.v3().sorobanMeta()?.events() ?? []
    case 4:
      return decoded
        .v4()
        .operations()
        .flatMap((operation) => operation.events())
    default:
      throw new Error('a contract call whose meta has another version')
  }
}

const textOf = (value: xdr.ScVal | undefined): string | null =>
  value?.switch().name === 'scvSymbol' ? value.sym().toString() : null

const addressOf = (value: xdr.ScVal): string =>
  library().Address.fromScAddress(value.address()).toString()

/** Returns the amount of a transfer: the data itself, or a field of it beside a muxed id (CAP-67). */
function amountOf(data: xdr.ScVal): bigint {
  const value = data.switch().name === 'scvMap' ? fieldOf(data, 'amount') : data
  if (!value) throw new Error('a transfer without amount')
  return library().scValToBigInt(value)
}

function idOf(data: xdr.ScVal): string | null {
  const id = data.switch().name === 'scvMap' ? fieldOf(data, 'to_muxed_id') : undefined
  return id?.switch().name === 'scvU64' ? id.u64().toString() : null
}

const fieldOf = (data: xdr.ScVal, name: string): xdr.ScVal | undefined =>
  (data.map() ?? []).find((entry) => textOf(entry.key()) === name)?.val()

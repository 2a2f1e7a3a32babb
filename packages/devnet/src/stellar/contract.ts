import { createHash } from 'node:crypto'
import { encodeKey, readKey } from './strkey.ts'
import { encode, encodeBytes } from './xdr.ts'

/** Body of an operation as the reference library prints it. */
type OperationBody = Record<string, unknown>

/** The chain's only contract. Its function `pay(to, amount)` pays the caller's native coin. */
const CONTRACT = encodeKey('C', Buffer.alloc(32, 7))
const FUNCTION = 'pay'

/** Returns an operation that lets the contract pay stroops to an address. */
export const contractCall = (to: string, stroops: bigint): OperationBody => ({
  invoke_host_function: {
    host_function: {
      invoke_contract: {
        contract_address: CONTRACT,
        function_name: FUNCTION,
        args: [{ address: to }, { i128: stroops.toString() }],
      },
    },
    auth: [],
  },
})

/** Returns what a contract call pays; null for other operations, undefined for other calls. */
export function contractPaymentOf(
  body: OperationBody,
): { to: string; amount: bigint } | null | undefined {
  const call = body['invoke_host_function'] as
    | { host_function: { invoke_contract?: { contract_address: string; args: unknown[] } } }
    | undefined
  if (!call) return null
  const { contract_address: contract, args = [] } = call.host_function.invoke_contract ?? {}
  const [to, amount] = args as [{ address?: string }?, { i128?: string }?]
  if (contract !== CONTRACT || !to?.address || !/^\d{1,18}$/.test(amount?.i128 ?? ''))
    return undefined
  return { to: to.address, amount: BigInt(amount?.i128 ?? '0') }
}

/** Result of a contract call that succeeded. */
export const CALLED = { op_inner: { invoke_host_function: { success: '0'.repeat(64) } } }

/** Returns the address of the native coin's built-in contract on a network (CAP-46-6). */
function nativeContract(networkId: Buffer): string {
  const preimage = {
    contract_id: {
      network_id: networkId.toString('hex'),
      contract_id_preimage: { asset: 'native' },
    },
  }
  return encodeKey(
    'C',
    createHash('sha256').update(encodeBytes('HashIdPreimage', preimage)).digest(),
  )
}

/** Returns the event of a payment of the contract, with the id of a muxed address (CAP-67). */
function eventOf(networkId: Buffer, { to, amount }: { to: string; amount: bigint }): unknown {
  const paid = readKey(to)
  const value = { i128: amount.toString() }
  const id = paid?.id ?? null
  const data =
    id === null
      ? value
      : {
          map: [
            { key: { symbol: 'amount' }, val: value },
            { key: { symbol: 'to_muxed_id' }, val: { u64: id.toString() } },
          ],
        }
  const topics = [
    { symbol: 'transfer' },
    { address: CONTRACT },
    { address: paid?.account },
    { string: 'native' },
  ]
  return {
    ext: 'v0',
    contract_id: nativeContract(networkId),
    type_: 'contract',
    body: { v0: { topics, data } },
  }
}

/** Returns the meta of a result in its fourth version, and the events of each operation in it. */
export function resultMeta(
  networkId: Buffer,
  bodies: readonly OperationBody[] | null,
): { meta: string; events: string[][] } {
  const events = (bodies ?? []).map((body) => {
    const paid = contractPaymentOf(body)
    return paid ? [eventOf(networkId, paid)] : []
  })
  const meta = {
    v4: {
      ext: 'v0',
      tx_changes_before: [],
      operations: events.map((each) => ({ ext: 'v0', changes: [], events: each })),
      tx_changes_after: [],
      soroban_meta: null,
      events: [],
      diagnostic_events: [],
    },
  }
  return {
    meta: encode('TransactionMeta', meta),
    events: events.map((each) => each.map((event) => encode('ContractEvent', event))),
  }
}

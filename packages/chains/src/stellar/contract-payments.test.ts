import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Account,
  Address,
  Asset,
  Keypair,
  MuxedAccount,
  nativeToScVal,
  Operation,
  StrKey,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-base'
import { loadRegistry, StellarClient, type Network, type Unreadable } from '../index.ts'

/** Tests of XLM that contracts pay, by the events of the native coin's contract (CAP-46-6, CAP-67). */
const XLM = loadRegistry('mainnet').network('XLM') as Network
const keypair = (byte: number) => Keypair.fromRawEd25519Seed(Buffer.alloc(32, byte)).publicKey()
const [CALLER, PAYEE, OTHER] = [keypair(1), keypair(2), keypair(3)]
const CONTRACT = StrKey.encodeContract(Buffer.alloc(32, 7))
const NATIVE = Asset.native().contractId(XLM.passphrase as string)

const uint32 = (value: number) => Buffer.from([0, 0, 0, value])
const stroops = (amount: bigint) => nativeToScVal(amount, { type: 'i128' })
const withId = (amount: bigint, id: bigint) =>
  nativeToScVal(
    { amount, to_muxed_id: id },
    { type: { amount: ['symbol', 'i128'], to_muxed_id: ['symbol', 'u64'] } },
  )

interface EventOptions {
  contract?: string
  name?: string
  from?: string
  to?: string
  data?: xdr.ScVal
}
const event = ({
  contract = NATIVE,
  name = 'transfer',
  from = CONTRACT,
  to = PAYEE,
  data = stroops(5n),
}: EventOptions = {}) =>
  new xdr.ContractEvent({
    ext: new xdr.ExtensionPoint(0),
    contractId: StrKey.decodeContract(contract) as unknown as xdr.ContractId,
    type: xdr.ContractEventType.contract(),
    body: new xdr.ContractEventBody(
      0,
      new xdr.ContractEventV0({
        topics: [
          xdr.ScVal.scvSymbol(name),
          new Address(from).toScVal(),
          new Address(to).toScVal(),
          nativeToScVal('native'),
        ],
        data,
      }),
    ),
  })

const SUCCESS = new xdr.TransactionResult({
  feeCharged: xdr.Int64.fromString('100'),
  ext: new xdr.TransactionResultExt(0),
  result: xdr.TransactionResultResult.txSuccess([
    xdr.OperationResult.opInner(
      xdr.OperationResultTr.invokeHostFunction(
        xdr.InvokeHostFunctionResult.invokeHostFunctionSuccess(Buffer.alloc(32)),
      ),
    ),
  ]),
}).toXDR('base64')

const call = () =>
  new TransactionBuilder(new Account(CALLER, '1'), {
    fee: '100',
    networkPassphrase: XLM.passphrase as string,
  })
    .addOperation(
      Operation.invokeContractFunction({ contract: CONTRACT, function: 'pay', args: [] }),
    )
    .setTimeout(0)
    .build()
    .toEnvelope()
    .toXDR('base64')

const meta = (version: 3 | 4, events: xdr.ContractEvent[]) =>
  (version === 3
    ? new xdr.TransactionMeta(
        3,
        new xdr.TransactionMetaV3({
          ext: new xdr.ExtensionPoint(0),
          txChangesBefore: [],
          operations: [],
          txChangesAfter: [],
          sorobanMeta: new xdr.SorobanTransactionMeta({
            ext: new xdr.SorobanTransactionMetaExt(0),
            events,
            returnValue: xdr.ScVal.scvVoid(),
            diagnosticEvents: [],
          }),
        }),
      )
    : new xdr.TransactionMeta(
        4,
        new xdr.TransactionMetaV4({
          ext: new xdr.ExtensionPoint(0),
          txChangesBefore: [],
          operations: [
            new xdr.OperationMetaV2({ ext: new xdr.ExtensionPoint(0), changes: [], events }),
          ],
          txChangesAfter: [],
          sorobanMeta: null,
          events: [],
          diagnosticEvents: [],
        }),
      )
  ).toXDR('base64')

/** Returns the transfers that a client reads from one contract call, and what it reports. */
async function read(info: object): Promise<{ paid: unknown[]; reports: Unreadable[] }> {
  const reports: Unreadable[] = []
  const header = Buffer.concat([Buffer.alloc(36, 1), Buffer.alloc(32, 2)]).toString('base64')
  const answers: Record<string, unknown> = {
    getLedgers: { ledgers: [{ sequence: 9, hash: 'L', headerXdr: header }] },
    getTransactions: {
      transactions: [
        {
          status: 'SUCCESS',
          txHash: 'h',
          ledger: 9,
          envelopeXdr: call(),
          resultXdr: SUCCESS,
          ...info,
        },
      ],
      latestLedger: 9,
    },
  }
  const client = new StellarClient(
    XLM,
    { url: 'http://127.0.0.1:1' },
    async (_url, init) => {
      const { method } = JSON.parse(String(init.body)) as { method: string }
      return new Response(JSON.stringify({ result: answers[method] }))
    },
    undefined,
    (each) => {
      reports.push(each)
    },
  )
  const block = await client.block(9)
  assert.equal(block?.txids.length, 1)
  const paid = (block?.transfers ?? []).map((each) => [
    each.address,
    each.amount,
    each.tag,
    each.sender,
    each.senders?.addresses,
  ])
  return { paid, reports }
}

/** The three places in which versions of the protocol and of Stellar RPC list events. */
const FORMS: Record<string, (events: xdr.ContractEvent[]) => object> = {
  'events of the answer': (events) => ({
    events: { contractEventsXdr: [events.map((each) => each.toXDR('base64'))] },
    resultMetaXdr: meta(4, []),
  }),
  'meta of version 3': (events) => ({ resultMetaXdr: meta(3, events) }),
  'meta of version 4': (events) => ({ events: null, resultMetaXdr: meta(4, events) }),
}
const SENDERS = [CONTRACT, CALLER]

for (const [form, shown] of Object.entries(FORMS))
  test(`reads XLM that a contract pays from the ${form}, and nothing else`, async () => {
    const { paid, reports } = await read(
      shown([
        event(),
        event({ contract: CONTRACT, data: stroops(1_000_000n) }),
        event({ name: 'approve' }),
        event({ data: withId(6n, 42n) }),
        event({ to: CONTRACT }),
        event({ from: OTHER, data: stroops(5n) }),
        event({ from: PAYEE }),
        event({ data: stroops(0n) }),
      ]),
    )
    assert.deepEqual(reports, [])
    assert.deepEqual(paid, [
      [PAYEE, 5n, null, CONTRACT, SENDERS],
      [PAYEE, 6n, '42', CONTRACT, SENDERS],
      [PAYEE, 5n, null, OTHER, [OTHER, CALLER]],
    ])
  })

test('a muxed address in the event itself is its account and id', async () => {
  const muxed = new MuxedAccount(new Account(PAYEE, '0'), '7').accountId()
  const { paid } = await read({
    events: { contractEventsXdr: [[event({ to: muxed }).toXDR('base64')]] },
  })
  assert.deepEqual(paid, [[PAYEE, 5n, '7', CONTRACT, SENDERS]])
})

test('a call whose events are missing or unreadable is reported, and a failed one pays nothing', async () => {
  for (const info of [
    {},
    { resultMetaXdr: Buffer.concat([uint32(9), StrKey.decodeContract(NATIVE)]).toString('base64') },
    { events: { contractEventsXdr: [[StrKey.decodeContract(NATIVE).toString('base64')]] } },
    { events: { contractEventsXdr: [[event({ data: xdr.ScVal.scvVoid() }).toXDR('base64')]] } },
  ]) {
    const { paid, reports } = await read(info)
    assert.deepEqual(
      [paid, reports.map(({ kind, name }) => [kind, name])],
      [[], [['transaction', 'h']]],
    )
  }
  const failed = await read({ status: 'FAILED', ...FORMS['meta of version 4']?.([event()]) })
  assert.deepEqual(failed, { paid: [], reports: [] })
})

// Responses of Tron, XRP, Stellar and Solana endpoints that omit a payment, or contain it twice:
// they are never read as an empty block or as two deposits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { xdr } from '@stellar/stellar-base'
import {
  RpcUnavailable,
  SolanaClient,
  StellarClient,
  tron,
  TronClient,
  XrpClient,
  type ChainBlock,
  type Fetch,
  type Network,
} from '../../src/index.ts'
import { client as solanaClient, head, MINT, OWNER, PAYER } from '../solana-support.ts'
import { local } from '../support.ts'

const net = (code: string) => local.network(code) as Network

async function unavailable(work: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(work, (error: unknown) => {
    assert.ok(error instanceof RpcUnavailable, String(error))
    assert.match(error.message, message)
    return true
  })
}
const amounts = (block: ChainBlock | null) => block?.transfers.map(({ amount }) => amount)

/** JSON-RPC responses by method. */
const rpc =
  (answers: Record<string, unknown>): Fetch =>
  async (_url, init) => {
    const { method } = JSON.parse(String(init.body)) as { method: string }
    return Response.json({ result: answers[method] ?? null })
  }

test('Tron: validates a block, its transactions, and the logs of a token transfer', async () => {
  const assets = local.assetsOf('TRX')
  const usdt = assets.find(({ type }) => type === 'token')!
  const TO = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH'
  const data = Buffer.from(tron.transferData(TO, 5n)).toString('hex')
  const hexOf = (address: string) =>
    Buffer.from(tron.transferData(address, 0n)).subarray(16, 36).toString('hex')
  const [ID, TX] = ['0000000000000007'.padEnd(64, 'a'), 'cd'.repeat(32)]
  const topics = [
    'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    ...[TO, TO].map((each) => hexOf(each).padStart(64, '0')),
  ]
  const log = {
    address: hexOf(usdt.contract_address as string),
    topics,
    data: '5'.padStart(64, '0'),
  }
  const call = {
    txID: TX,
    ret: [{ contractRet: 'SUCCESS' }],
    raw_data: {
      contract: [
        {
          type: 'TriggerSmartContract',
          parameter: {
            value: { owner_address: `41${hexOf(TO)}`, contract_address: `41${log.address}`, data },
          },
        },
      ],
    },
  }
  const header = { number: 7, parentHash: 'b'.repeat(64), txTrieRoot: '9'.repeat(64) }
  const block = (transactions: unknown[] = [call], more: object = {}) => ({
    blockID: ID,
    block_header: { raw_data: header },
    transactions,
    ...more,
  })
  const info = (logs?: unknown[]) => ({ id: TX, blockNumber: 7, ...(logs ? { log: logs } : {}) })
  const read = (shown: unknown, infos: unknown = [info([log])], alone: unknown = info([log])) =>
    new TronClient(net('TRX'), assets, { url: 'http://node.test' }, async (url) =>
      Response.json(
        url.endsWith('getblockbynum')
          ? shown
          : url.endsWith('gettransactioninfobyblocknum')
            ? infos
            : url.endsWith('gettransactioninfobyid')
              ? alone
              : {},
      ),
    ).block(7)
  assert.deepEqual(amounts(await read(block())), [5n])
  // Logs that are missing in the response with the block are requested; if the endpoint returns
  // none then either, its response is accepted.
  assert.deepEqual(amounts(await read(block(), [info()])), [5n])
  assert.deepEqual(amounts(await read(block(), [info([])], info())), [])
  await unavailable(read(block(), [info()], {}), /gettransactioninfobyid does not report/)
  await unavailable(read(block(), [info([{ ...log, address: undefined }])]), /without address/)
  await unavailable(read(block([])), /getblockbynum returned 7 without its transactions/)
  await unavailable(read(block([call, call])), /twice/)
  await unavailable(read(block([{ ...call, ret: undefined }])), /without ret.contractRet/)
  await unavailable(read(block([{ ...call, txID: undefined }])), /without txID/)
  await unavailable(read(block([{ ...call, raw_data: {} }])), /without raw_data.contract/)
  await unavailable(
    read(block([call], { blockID: ID.replace('7', '8') })),
    /a blockID that is not of 7/,
  )
  await unavailable(
    read(block([call], { block_header: { raw_data: { number: 7 } } })),
    /without parentHash/,
  )
})

test('XRP: refuses a ledger with missing or repeated transactions, or without required fields', async () => {
  const payment = {
    hash: 'H',
    TransactionType: 'Payment',
    Account: 'rA',
    Destination: 'rB',
    metaData: { TransactionResult: 'tesSUCCESS', delivered_amount: '7' },
  }
  const read = (transactions: unknown, more: object = {}, ledger: object = {}) =>
    new XrpClient(
      net('XRP'),
      { url: 'http://node.test' },
      rpc({
        ledger: {
          validated: true,
          ledger_hash: 'L',
          ledger_index: 9,
          ledger: { parent_hash: 'P', transaction_hash: 'AB', transactions, ...ledger },
          ...more,
        },
      }),
    ).block(9)
  assert.deepEqual(amounts(await read([payment])), [7n])
  for (const none of [[], undefined])
    await unavailable(read(none), /ledger returned 9 without its transactions/)
  assert.deepEqual(amounts(await read([], {}, { transaction_hash: '0'.repeat(64) })), [])
  await unavailable(read([payment, payment]), /with H twice/)
  await unavailable(read([{ ...payment, hash: undefined }]), /transaction without hash/)
  await unavailable(
    read([{ ...payment, metaData: { delivered_amount: '7' } }]),
    /without TransactionResult/,
  )
  await unavailable(read([{ ...payment, metaData: undefined }]), /without its outcome/)
  await unavailable(
    read([payment], { ledger_hash: undefined }),
    /without ledger_hash or parent_hash/,
  )
  await unavailable(read([payment], {}, { ledger_hash: 'M' }), /with two hashes/)
  await unavailable(read([payment], { ledger_index: 8 }), /another height/)
})

test('Stellar: refuses pages of transactions that overlap, end early, or lack required fields', async () => {
  const at = (results: Uint8Array) =>
    xdr.LedgerHeaderHistoryEntry.fromXDR(
      Buffer.concat([
        Buffer.alloc(32, 1),
        Buffer.alloc(4),
        Buffer.alloc(32, 2),
        // The consensus value: transaction set, time, upgrades, extension.
        Buffer.alloc(32),
        Buffer.alloc(8),
        Buffer.alloc(4),
        Buffer.alloc(4),
        results,
        // The rest of the header: bucket list, sequence, coins, fees, inflation, ids, fee, reserve,
        // size, skip list, extension; and the extension of the entry.
        Buffer.alloc(32),
        Buffer.alloc(4),
        Buffer.alloc(8),
        Buffer.alloc(8),
        Buffer.alloc(4),
        Buffer.alloc(8),
        Buffer.alloc(4),
        Buffer.alloc(4),
        Buffer.alloc(4),
        Buffer.alloc(128),
        Buffer.alloc(4),
        Buffer.alloc(4),
      ]),
    ).toXDR('base64')
  const NONE = Buffer.from(
    'df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119',
    'hex',
  )
  const one = (txHash: string, more: object = {}) => ({
    status: 'FAILED',
    txHash,
    ledger: 9,
    envelopeXdr: '',
    resultXdr: '',
    ...more,
  })
  const read = (page: object, results: Uint8Array = Buffer.alloc(32, 5)) =>
    new StellarClient(
      net('XLM'),
      { url: 'http://node.test' },
      rpc({
        getLedgers: { ledgers: [{ sequence: 9, hash: 'L', headerXdr: at(results) }] },
        getTransactions: page,
      }),
    ).block(9)
  assert.deepEqual((await read({ transactions: [one('a'), one('b')] }))?.txids, ['a', 'b'])
  assert.deepEqual((await read({ transactions: [], latestLedger: 9 }, NONE))?.txids, [])
  await unavailable(
    read({ transactions: [] }),
    /getTransactions returned ledger 9 without its transactions/,
  )
  await unavailable(
    read({ transactions: [one('a')], latestLedger: 8 }),
    /has not seen ledger 9 yet/,
  )
  await unavailable(
    read({ transactions: [one('a'), one('a')] }),
    /getTransactions returned a twice/,
  )
  await unavailable(read({}), /returned no transactions|without its transactions/)
  await unavailable(
    read({ transactions: [one('a', { ledger: undefined })] }),
    /without ledger or txHash/,
  )
  await unavailable(
    read({ transactions: [one('a', { txHash: undefined })] }),
    /without ledger or txHash/,
  )
  await unavailable(read({ transactions: [one('a', { status: undefined })] }), /without status/)
  const whole = Array.from({ length: 200 }, (_, index) => one(`t${index}`))
  await unavailable(read({ transactions: whole }), /a full page and no cursor/)
  await unavailable(read({ transactions: whole, cursor: '1' }), /twice|no cursor/)
})

test('Solana: refuses a block without results or balances, and an unproven skipped slot', async () => {
  assert.ok(SolanaClient)
  const TOKENS = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
  const meta = {
    err: null,
    fee: 5000,
    preBalances: [9, 0, 1],
    postBalances: [1, 3, 1],
    preTokenBalances: [],
    postTokenBalances: [],
  }
  const one = (more: object = {}, signature: string | undefined = 'S') => ({
    transaction: {
      signatures: [signature],
      accountKeys: [PAYER, OWNER, TOKENS].map((pubkey) => ({ pubkey })),
    },
    meta: { ...meta, ...more },
  })
  const read = (transactions: unknown, more: object = {}) =>
    solanaClient({ getBlock: () => ({ ...head('B', 'A', 1), transactions, ...more }) }).block(2)
  assert.deepEqual(amounts(await read([one()])), [3n])
  assert.deepEqual(
    amounts(
      await read([one({ err: { InstructionError: [0, 'Custom'] }, preBalances: undefined })]),
    ),
    [],
    'a failed one moves nothing',
  )
  await unavailable(read(undefined), /getBlock returned 2 without transactions/)
  await unavailable(read([{ ...one(), meta: null }]), /with S without meta.err/)
  await unavailable(read([one({ err: undefined })]), /with S without meta.err/)
  for (const balances of [undefined, null, [1]])
    await unavailable(read([one({ postBalances: balances })]), /without the balances/)
  await unavailable(read([one({ postTokenBalances: null })]), /without token balances/)
  const token = { accountIndex: 1, mint: MINT, owner: OWNER, uiTokenAmount: { amount: '5' } }
  await unavailable(
    read([one({ postTokenBalances: [{ ...token, owner: undefined }] })]),
    /without an owner of tokens/,
  )
  await unavailable(
    read([one({ postTokenBalances: [{ ...token, uiTokenAmount: undefined }] })]),
    /without uiTokenAmount.amount/,
  )
  await unavailable(read([one(), one()]), /with S twice/)
  await unavailable(read([{ ...one(), transaction: { accountKeys: [] } }]), /without signatures/)
  await unavailable(read([one()], { blockhash: undefined }), /without blockhash/)
  await unavailable(read([one()], { parentSlot: 2 }), /parentSlot that is not before it/)
  const first = await solanaClient({
    getBlock: () => ({ ...head('B', '1'.repeat(32), 0), transactions: [] }),
  }).block(0)
  assert.equal(first?.hash, 'B', 'the first block is its own parent')
  const skipped = (next: object) =>
    solanaClient({
      getBlock: ([slot]: number[]) => (slot === 2 ? null : next),
      getBlocksWithLimit: () => [4],
    }).block(2)
  assert.deepEqual((await skipped(head('D', 'A', 1)))?.txids, [])
  await unavailable(
    skipped({ ...head('D', 'A', 1), parentSlot: undefined }),
    /: getBlock returned 4 without parentSlot or previousBlockhash/,
  )
})

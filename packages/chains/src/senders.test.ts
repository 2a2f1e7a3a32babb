// Senders of a payment: everyone whose coins a transaction used, and whether the list is complete.
// Screening checks each of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Account,
  Asset as XlmAsset,
  Keypair,
  MuxedAccount,
  Operation,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-base'
import {
  EvmClient,
  loadRegistry,
  RpcUnavailable,
  solana,
  SolanaClient,
  StellarClient,
  UtxoClient,
  XrpClient,
  type Fetch,
  type Network,
} from './index.ts'

const mainnet = loadRegistry('mainnet')
const networkOf = (code: string): Network =>
  mainnet.networks.find((each) => each.code === code) as Network
/** JSON-RPC responses by method. */
const answering =
  (answers: Record<string, (...parameters: never[]) => unknown>, requests: string[] = []): Fetch =>
  async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as { method: string; params: never[] }
    requests.push(`${method} ${JSON.stringify(params)}`)
    const answer = answers[method]?.(...(Array.isArray(params) ? params : ([params] as never[])))
    return new Response(
      JSON.stringify(
        answer instanceof Error
          ? { error: { code: -5, message: answer.message } }
          : { result: answer ?? null },
      ),
    )
  }
const endpoint = { url: 'http://node' }

// BTC: the first payment of block 170 comes from a bare public key; the others have common forms.
const P2PK =
  '410411db93e1dcdb8a016b49840f8c53bc1eb68a382e97b1482ecad7b148a6909a5cb2e0eaddfb84ccf9744464f82e160bfa9b8b64f9d4c03f999b8643f656b412a3ac'
const P2WPKH = [
  '0014751e76e8199196d454941c45d1b3a323f1433bd6',
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
] as const
const P2PKH = [
  '76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac',
  '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
] as const
const P2TR = [
  '512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
] as const

function bitcoin(scripts: readonly string[], requests: string[] = []): UtxoClient {
  const parents = new Map(scripts.map((hex, at) => [`parent${at}`, hex]))
  return new UtxoClient(
    networkOf('BTC'),
    endpoint,
    answering(
      {
        getrawtransaction: (txid: string) =>
          txid === 'paid'
            ? { txid, vin: scripts.map((_, at) => ({ txid: `parent${at}`, vout: 0 })), vout: [] }
            : parents.has(txid)
              ? {
                  txid,
                  vin: [],
                  vout: [{ value: 1, n: 0, scriptPubKey: { hex: parents.get(txid) } }],
                }
              : new Error('No such mempool or blockchain transaction'),
      },
      requests,
    ),
  )
}

test('UTXO: the senders include the address of every input', async () => {
  assert.deepEqual(await bitcoin([P2WPKH[0], P2PKH[0], P2TR[0], P2PKH[0]]).senders('paid'), {
    addresses: [P2WPKH[1], P2PKH[1], P2TR[1]],
    complete: true,
  })
})

test('UTXO: an input whose script has no address is a sender that cannot be screened', async () => {
  assert.deepEqual(await bitcoin([P2WPKH[0], P2PK]).senders('paid'), {
    addresses: [P2WPKH[1]],
    complete: false,
  })
})

test('UTXO: fails if the node does not know a parent transaction, instead of omitting a sender', async () => {
  const client = new UtxoClient(
    networkOf('BTC'),
    endpoint,
    answering({
      getrawtransaction: (txid: string) =>
        txid === 'paid'
          ? { txid, vin: [{ txid: 'gone', vout: 0 }], vout: [] }
          : new Error('No such mempool or blockchain transaction'),
    }),
  )
  await assert.rejects(client.senders('paid'))
  const short = new UtxoClient(
    networkOf('BTC'),
    endpoint,
    answering({
      getrawtransaction: (txid: string) =>
        txid === 'paid'
          ? { txid, vin: [{ txid: 'parent', vout: 7 }], vout: [] }
          : { txid, vin: [], vout: [] },
    }),
  )
  await assert.rejects(short.senders('paid'), RpcUnavailable)
})

test('UTXO: requests each parent transaction once, however many of its outputs are spent', async () => {
  const requests: string[] = []
  const client = new UtxoClient(
    networkOf('BTC'),
    endpoint,
    answering(
      {
        getrawtransaction: (txid: string) =>
          txid === 'paid'
            ? { txid, vin: [0, 1, 2].map((vout) => ({ txid: 'parent', vout })), vout: [] }
            : {
                txid,
                vin: [],
                vout: [0, 1, 2].map((n) => ({ value: 1, n, scriptPubKey: { hex: P2PKH[0] } })),
              },
      },
      requests,
    ),
  )
  assert.deepEqual(await client.senders('paid'), { addresses: [P2PKH[1]], complete: true })
  assert.equal(requests.length, 2)
})

const [A, B, C] = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
] as const

test('ERC-20: the senders of a transferFrom are the log’s account and the transaction’s sender', async () => {
  const assets = mainnet.assetsOf('ETH')
  const usdt = assets.find(({ asset_name: name }) => name === 'USDT_ETH')!
    .contract_address as string
  const word = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
  const client = new EvmClient(
    networkOf('ETH'),
    assets,
    endpoint,
    answering({
      eth_getBlockByNumber: () => ({
        number: '0x1',
        hash: '0xb',
        parentHash: '0xa',
        transactions: [
          { hash: '0xt', from: C.toLowerCase(), to: usdt, value: '0x0' },
          { hash: '0xn', from: A, to: B, value: '0x1' },
        ],
      }),
      eth_getLogs: () =>
        ['0xt', '0xforeign'].map((transactionHash, at) => ({
          address: usdt,
          topics: [
            '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
            word(A),
            word(B),
          ],
          data: word('0x05'),
          logIndex: `0x${at}`,
          transactionHash,
          blockHash: '0xb',
        })),
      // The block does not list the transaction, but its receipt names the block.
      eth_getTransactionReceipt: () => ({ transactionHash: '0xforeign', blockHash: '0xb' }),
    }),
  )
  assert.deepEqual(
    (await client.block(1))?.transfers.map(({ txid, sender, senders }) => [txid, sender, senders]),
    [
      ['0xn', A, { addresses: [A], complete: true }],
      ['0xt', A, { addresses: [A, C], complete: true }],
      ['0xforeign', A, { addresses: [A], complete: false }],
    ],
  )
})

// XRP: transactions in the format of rippled, and a ledger with its metadata.
const created = 'rMaa8VLBTjwTJWA2kSme4Sqgphhr6Lr6FH'
const meta = (nodes: unknown[], more = {}) => ({
  metaData: { TransactionResult: 'tesSUCCESS', AffectedNodes: nodes, ...more },
})
const escrow = {
  LedgerEntryType: 'Escrow',
  FinalFields: { Account: 'rOwner', Destination: 'rTo', Amount: '10000', DestinationTag: 23 },
}
const channel = (fields: Record<string, unknown>, previous: Record<string, unknown>) => ({
  ModifiedNode: {
    LedgerEntryType: 'PayChannel',
    FinalFields: {
      Account: 'rOwner',
      Destination: 'rTo',
      Amount: '100',
      DestinationTag: 4,
      ...fields,
    },
    PreviousFields: previous,
  },
})
const ledgerOf = async (transactions: Record<string, unknown>[]) =>
  (
    await new XrpClient(
      networkOf('XRP'),
      endpoint,
      answering({
        ledger: () => ({
          status: 'success',
          validated: true,
          ledger_hash: 'L',
          ledger_index: 9,
          ledger: { parent_hash: 'P', transactions },
        }),
      }),
    ).block(9)
  )?.transfers.map(({ txid, address, amount, tag, sender, senders }) => [
    txid,
    address,
    amount,
    tag,
    sender,
    senders,
  ])

test('XRP: senders are the account, the owner and the finisher of an escrow or channel', async () => {
  assert.deepEqual(
    await ledgerOf([
      {
        hash: 'pay',
        TransactionType: 'Payment',
        Account: created,
        Destination: 'rTo',
        ...meta([], { delivered_amount: '5' }),
      },
      {
        hash: 'delegated',
        TransactionType: 'Payment',
        Account: created,
        Delegate: 'rAgent',
        Destination: 'rTo',
        ...meta([], { delivered_amount: '5' }),
      },
      {
        hash: 'finish',
        TransactionType: 'EscrowFinish',
        Account: 'rAnyone',
        Owner: 'rOwner',
        OfferSequence: 7,
        ...meta([{ DeletedNode: escrow }]),
      },
      {
        hash: 'claim',
        TransactionType: 'PaymentChannelClaim',
        Account: 'rOwner',
        Channel: 'C',
        Balance: '60',
        ...meta([channel({ Balance: '60' }, { Balance: '25' })]),
      },
      {
        hash: 'close',
        TransactionType: 'PaymentChannelClaim',
        Account: 'rAnyone',
        ...meta([{ DeletedNode: channel({ Balance: '60' }, { Balance: '50' }).ModifiedNode }]),
      },
    ]),
    [
      ['pay', 'rTo', 5n, null, created, { addresses: [created], complete: true }],
      ['delegated', 'rTo', 5n, null, created, { addresses: [created, 'rAgent'], complete: true }],
      [
        'finish',
        'rTo',
        10_000n,
        '23',
        'rOwner',
        { addresses: ['rOwner', 'rAnyone'], complete: true },
      ],
      ['claim', 'rTo', 35n, '4', 'rOwner', { addresses: ['rOwner'], complete: true }],
      ['close', 'rTo', 10n, '4', 'rOwner', { addresses: ['rOwner', 'rAnyone'], complete: true }],
    ],
  )
})

test('XRP: token escrows, cancelled escrows and channels that pay nothing credit no account', async () => {
  assert.deepEqual(
    await ledgerOf([
      {
        hash: 'token',
        TransactionType: 'EscrowFinish',
        Account: 'rAnyone',
        ...meta([
          {
            DeletedNode: {
              ...escrow,
              FinalFields: {
                ...escrow.FinalFields,
                Amount: { currency: 'USD', issuer: 'rX', value: '1' },
              },
            },
          },
        ]),
      },
      {
        hash: 'cancel',
        TransactionType: 'EscrowCancel',
        Account: 'rAnyone',
        ...meta([{ DeletedNode: escrow }]),
      },
      {
        hash: 'expiry',
        TransactionType: 'PaymentChannelClaim',
        Account: 'rOwner',
        ...meta([channel({ Balance: '60' }, { Expiration: 5 })]),
      },
      {
        hash: 'failed',
        TransactionType: 'EscrowFinish',
        Account: 'rAnyone',
        metaData: { TransactionResult: 'tecNO_PERMISSION', AffectedNodes: [] },
      },
    ]),
    [],
  )
})

test('Stellar: senders are the sources of operation and transaction, and the fee account', async () => {
  const [signer, other, payer, to] = [1, 2, 3, 4].map((seed) =>
    Keypair.fromRawEd25519Seed(Buffer.alloc(32, seed)),
  ) as [Keypair, Keypair, Keypair, Keypair]
  const passphrase = networkOf('XLM').passphrase as string
  const muxed = new MuxedAccount(new Account(other.publicKey(), '0'), '8').accountId()
  const inner = new TransactionBuilder(new Account(signer.publicKey(), '1'), {
    fee: '100',
    networkPassphrase: passphrase,
  })
    .addOperation(
      Operation.payment({
        source: muxed,
        destination: to.publicKey(),
        asset: XlmAsset.native(),
        amount: '1',
      }),
    )
    .addOperation(Operation.accountMerge({ destination: to.publicKey() }))
    .setTimeout(0)
    .build()
  const result = (kind: 'success' | 'bump') => {
    const results = [
      xdr.OperationResult.opInner(
        xdr.OperationResultTr.payment(xdr.PaymentResult.paymentSuccess()),
      ),
      xdr.OperationResult.opInner(
        xdr.OperationResultTr.accountMerge(
          xdr.AccountMergeResult.accountMergeSuccess(xdr.Int64.fromString('7')),
        ),
      ),
    ]
    const outer =
      kind === 'success'
        ? xdr.TransactionResultResult.txSuccess(results)
        : xdr.TransactionResultResult.txFeeBumpInnerSuccess(
            new xdr.InnerTransactionResultPair({
              transactionHash: Buffer.alloc(32),
              result: new xdr.InnerTransactionResult({
                feeCharged: xdr.Int64.fromString('0'),
                result: xdr.InnerTransactionResultResult.txSuccess(results),
                ext: new xdr.InnerTransactionResultExt(0),
              }),
            }),
          )
    return new xdr.TransactionResult({
      feeCharged: xdr.Int64.fromString('100'),
      ext: new xdr.TransactionResultExt(0),
      result: outer,
    }).toXDR('base64')
  }
  const bump = TransactionBuilder.buildFeeBumpTransaction(
    payer.publicKey(),
    '200',
    inner,
    passphrase,
  )
  const client = new StellarClient(
    networkOf('XLM'),
    endpoint,
    answering({
      getLedgers: () => ({
        ledgers: [{ sequence: 9, hash: 'L', headerXdr: Buffer.alloc(80).toString('base64') }],
      }),
      getTransactions: () => ({
        transactions: [[inner, 'success'] as const, [bump, 'bump'] as const].map(
          ([each, kind]) => ({
            status: 'SUCCESS',
            txHash: kind,
            ledger: 9,
            envelopeXdr: each.toEnvelope().toXDR('base64'),
            resultXdr: result(kind),
          }),
        ),
      }),
    }),
  )
  const [s, o, p] = [signer, other, payer].map((each) => each.publicKey()) as [
    string,
    string,
    string,
  ]
  assert.deepEqual(
    (await client.block(9))?.transfers.map(({ txid, sender, senders }) => [txid, sender, senders]),
    [
      ['success', o, { addresses: [o, s], complete: true }],
      ['success', s, { addresses: [s], complete: true }],
      ['bump', o, { addresses: [o, s, p], complete: true }],
      ['bump', s, { addresses: [s, p], complete: true }],
    ],
  )
})

const MINT = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const [OWNER, PAYER, LISTED, SECOND] = [
  '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM',
  'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg',
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'Vote111111111111111111111111111111111111111',
] as const

async function solanaTransfers(
  keys: { pubkey: string; signer?: boolean }[],
  meta: Record<string, unknown>,
) {
  const assets = mainnet.assetsOf('SOL')
  const client = new SolanaClient(
    networkOf('SOL'),
    assets,
    endpoint,
    answering({
      getBlock: () => ({
        blockhash: 'B',
        previousBlockhash: 'A',
        parentSlot: 1,
        blockHeight: 2,
        transactions: [
          {
            transaction: {
              signatures: ['S'],
              accountKeys: keys.map((key) => ({
                signer: false,
                writable: true,
                source: 'transaction',
                ...key,
              })),
            },
            meta: { err: null, fee: 5000, preTokenBalances: [], postTokenBalances: [], ...meta },
          },
        ],
      }),
    }),
  )
  return (await client.block(2))?.transfers.map(({ address, asset, senders }) => [
    address,
    asset,
    senders,
  ])
}

test('Solana: senders are all accounts that lost lamports or signed, not only the fee payer', async () => {
  const keys = [
    { pubkey: PAYER, signer: true },
    { pubkey: LISTED, signer: true },
    { pubkey: OWNER },
    { pubkey: SECOND, signer: true },
  ]
  assert.deepEqual(
    await solanaTransfers(keys, {
      preBalances: [10_000, 50_000_000_000, 0, 7],
      postBalances: [5000, 0, 50_000_000_000, 7],
    }),
    [[OWNER, 'SOL', { addresses: [PAYER, LISTED, SECOND], complete: true }]],
  )
})

test('Solana: senders are the owners of all token accounts that lost tokens', async () => {
  const own = solana.tokenAccountOf(OWNER, MINT)
  const token = (accountIndex: number, owner: string | undefined, amount: string, mint = MINT) => ({
    accountIndex,
    mint,
    ...(owner === undefined ? {} : { owner }),
    uiTokenAmount: { amount },
  })
  const keys = [
    { pubkey: PAYER, signer: true },
    { pubkey: own },
    { pubkey: 'first' },
    { pubkey: 'second' },
  ]
  const still = { preBalances: [9000, 1, 1, 1], postBalances: [4000, 1, 1, 1] }
  assert.deepEqual(
    await solanaTransfers(keys, {
      ...still,
      preTokenBalances: [token(1, OWNER, '0'), token(2, SECOND, '5'), token(3, LISTED, '9')],
      postTokenBalances: [token(1, OWNER, '14'), token(2, SECOND, '0'), token(3, LISTED, '0')],
    }),
    [[OWNER, 'USDC_SOL', { addresses: [PAYER, SECOND, LISTED], complete: true }]],
  )
  // A closed account has no balance afterwards; another coin may have been exchanged for this one;
  // an old node does not return the owner.
  assert.deepEqual(
    (
      await solanaTransfers(keys, {
        ...still,
        preTokenBalances: [token(2, LISTED, '5', 'AnotherMint')],
        postTokenBalances: [token(1, OWNER, '5')],
      })
    )?.[0]?.[2],
    { addresses: [PAYER, LISTED], complete: true },
  )
  assert.deepEqual(
    (
      await solanaTransfers(keys, {
        ...still,
        preTokenBalances: [token(2, undefined, '5')],
        postTokenBalances: [token(1, OWNER, '5')],
      })
    )?.[0]?.[2],
    { addresses: [PAYER], complete: false },
  )
})

// The Solana client: slots without blocks, and payments in changes of balances.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcUnavailable, solana } from '../index.ts'
import {
  client,
  head,
  MINT,
  OWNER,
  PAYER,
  refusal,
  USDC,
  type Answers,
} from '../../testing/solana-support.ts'

test('a skipped slot is empty, a lost block is an error, and a future block is absent', async () => {
  const answers: Answers = {
    getBlock: ([slot = 0]: number[]) =>
      slot === 12
        ? { ...head('B12', 'B9', 9), transactions: [] }
        : slot > 12
          ? refusal(-32004, 'Block not available')
          : refusal(-32009, 'skipped, or missing in long-term storage'),
    getBlocksWithLimit: () => [12],
  }
  assert.deepEqual(await client(answers).block(10), {
    height: 10,
    hash: 'B9',
    parent: 'B9',
    txids: [],
    transfers: [],
  })
  assert.equal(await client(answers).block(13), null)
  await assert.rejects(client(answers).block(9), RpcUnavailable)
  await assert.rejects(
    client({ ...answers, getBlock: () => refusal(-32001, 'Block cleaned up') }).block(3),
    RpcUnavailable,
  )
})

test('prefetches the next blocks up to the tip, each once', async () => {
  const requestCounts: number[] = []
  const node = client({
    getLatestBlockhash: () => ({ context: { slot: 7 }, value: { blockhash: 'B7' } }),
    getBlock: ([slot = 0]: number[]) => {
      requestCounts.push(slot)
      return { ...head(`B${slot}`, `B${slot - 1}`, slot - 1), transactions: [] }
    },
  })
  await node.tip()
  for (let slot = 1; slot <= 7; slot++) assert.equal((await node.block(slot))!.hash, `B${slot}`)
  assert.deepEqual(
    requestCounts.toSorted((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7],
  )
})

test('deposits are exact balance increases of successful transactions', async () => {
  const ata = solana.tokenAccountOf(OWNER, MINT)
  const token = (accountIndex: number, amount: string, mint = MINT) => ({
    accountIndex,
    mint,
    owner: OWNER,
    uiTokenAmount: { amount },
  })
  const transaction = (err: unknown, keys: string[], meta: Record<string, unknown>) => ({
    transaction: { signatures: ['S'], accountKeys: keys.map((pubkey) => ({ pubkey })) },
    meta: { err, fee: 5000, ...meta },
  })
  const block = (transactions: unknown[]) =>
    client({ getBlock: () => ({ ...head('B', 'A', 1), transactions }) }).block(2)
  const raw = `raw:${JSON.stringify({ ...head('B', 'A', 1), transactions: [transaction(null, [PAYER, OWNER], { preBalances: [1, 2], postBalances: [0, 3] })] }).replace('"postBalances":[0,3]', '"postBalances":[0,9007199254740995]')}`
  assert.deepEqual(
    (await client({ getBlock: () => raw }).block(2))!.transfers.map(({ amount, address }) => [
      amount,
      address,
    ]),
    [[9007199254740993n, OWNER]],
  )
  const moved = {
    preBalances: [9, 1],
    postBalances: [4, 1],
    preTokenBalances: [token(1, '5')],
    postTokenBalances: [token(1, '12')],
  }
  assert.deepEqual((await block([transaction(null, [PAYER, ata], moved)]))!.transfers, [
    {
      txid: 'S',
      position: 1,
      asset: 'USDC_SOL',
      address: OWNER,
      amount: 7n,
      sender: PAYER,
      senders: { addresses: [PAYER], complete: true },
      coinbase: false,
    },
  ])
  for (const other of [
    transaction({ InstructionError: [0, 'Custom'] }, [PAYER, ata], moved),
    transaction(null, [PAYER, PAYER], moved),
    transaction(null, [PAYER, ata], { ...moved, postTokenBalances: [token(1, '12', PAYER)] }),
  ]) {
    assert.deepEqual((await block([other]))!.transfers, [])
  }
})

test('tokens in another account of an owner are set aside, and are in no balance', async () => {
  const usual = solana.tokenAccountOf(OWNER, MINT)
  const meta = (index: number, before: string | null, after: string, mint = MINT) => {
    const held = (amount: string) => ({
      accountIndex: index,
      mint,
      owner: OWNER,
      uiTokenAmount: { amount },
    })
    return {
      err: null,
      fee: 5000,
      preBalances: [9, 1, 1],
      postBalances: [4, 1, 1],
      preTokenBalances: before === null ? [] : [held(before)],
      postTokenBalances: [held(after)],
    }
  }
  const read = async (facts: object) => {
    const accountKeys = [PAYER, usual, 'second'].map((pubkey) => ({ pubkey }))
    const transactions = [{ transaction: { signatures: ['S'], accountKeys }, meta: facts }]
    const node = client({ getBlock: () => ({ ...head('B', 'A', 1), transactions }) })
    const { transfers = [], aside = [] } = (await node.block(2)) ?? {}
    return { transfers: transfers.length, aside }
  }
  const coin = {
    txid: 'S',
    vout: 2,
    address: OWNER,
    asset: 'USDC_SOL',
    amount: 7n,
    reason: 'TOKEN_ACCOUNT',
    token: null,
    account: 'second',
  }
  assert.deepEqual(await read(meta(2, '5', '12')), { transfers: 0, aside: [coin] })
  assert.deepEqual(await read(meta(2, null, '7')), { transfers: 0, aside: [coin] })
  assert.deepEqual(await read(meta(1, '5', '12')), { transfers: 1, aside: [] })
  // The account is emptied; the token is unknown; the transaction failed.
  assert.deepEqual(await read(meta(2, '12', '5')), { transfers: 0, aside: [] })
  assert.deepEqual(await read(meta(2, '5', '12', PAYER)), { transfers: 0, aside: [] })
  assert.deepEqual(await read({ ...meta(2, '5', '12'), err: 'X' }), { transfers: 0, aside: [] })

  const account = (pubkey: string, amount: string) => ({
    pubkey,
    account: { data: { parsed: { info: { tokenAmount: { amount } } } } },
  })
  const node = (...value: unknown[]) =>
    client({ getTokenAccountsByOwner: () => ({ context: { slot: 1 }, value }) })
  const several = node(account('second', '7'), account(usual, '3'), account('empty', '0'))
  assert.deepEqual(await several.holdings(OWNER, USDC), {
    balance: 3n,
    elsewhere: [{ place: 'second', amount: 7n, reason: 'TOKEN_ACCOUNT' }],
  })
  assert.equal(await several.balance(OWNER, USDC), 3n)
  assert.deepEqual(await node().holdings(OWNER, USDC), { balance: 0n, elsewhere: [] })
})

test('a failed transaction costs its fee; a token fee includes the account that it created', async () => {
  const status = (err: unknown) =>
    client({
      getSignatureStatuses: () => ({
        context: { slot: 1 },
        value: [{ slot: 7, err, confirmationStatus: 'finalized' }],
      }),
      getTransaction: () => ({
        slot: 7,
        meta: { err, fee: 5000, preBalances: [3_000_000, 0], postBalances: [955_720, 2_039_280] },
      }),
    }).status('S', { asset: USDC, from: PAYER, to: OWNER })
  assert.deepEqual(await status(null), {
    state: 'included',
    height: 7,
    blockHash: '',
    succeeded: true,
    fee: 2_044_280n,
  })
  assert.deepEqual(await status('X'), {
    state: 'included',
    height: 7,
    blockHash: '',
    succeeded: false,
    fee: 5000n,
  })
})

test('refuses the endpoint of another chain', async () => {
  await client({ getGenesisHash: () => 'G' }).probe()
  await assert.rejects(client({ getGenesisHash: () => 'other' }).probe(), { code: 'WRONG_NETWORK' })
})

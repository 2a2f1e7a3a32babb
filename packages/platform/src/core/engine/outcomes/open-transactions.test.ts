import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { useDatabase, DepositFixture } from '../../../../testing/deposits-support.ts'
import { ClusterKeys } from '../../../../testing/simulator/byzantine/cluster-keys.ts'
import { amountOf, Wallets } from '../../../../testing/simulator/byzantine/wallets.ts'
import { RpcUnavailable, signing } from '@custody/chains'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../signing/nodes.ts'
import { post } from '../../ledger/post.ts'
import { runStep } from '../run.ts'
import type { TransactionRow } from '../transaction.ts'

/**
 * Tests of transfers that are to fail while a signer node may have signed them with another one, without
 * the platform's knowledge. `failed` may be reported only if nothing of them can be included any more.
 */
const database = useDatabase()

/** What a node has done with the transaction: nothing, begun to sign it, signed it, or it is away. */
type State = 'untouched' | 'begun' | 'signed' | 'away'
type Family = 'evm' | 'utxo' | 'xrp' | 'solana' | 'stellar'
const UNSIGNED_HASH = 'ab'.repeat(32)
const EXPIRES = 1000
const KEYS = new ClusterKeys(1)
const WALLETS = new Wallets(KEYS)

interface Setup {
  nodes: State[]
  isCancelled?: boolean
  isSubmitted?: boolean
  unsigned?: object
}

async function failing(family: Family, setup: Setup, client: Record<string, unknown> = {}) {
  const { nodes, isCancelled = false, isSubmitted = true } = setup
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  const alice = await fixture.tenant('alice')
  Object.assign(fixture.chain, client)
  const [id, attempt, replacement] = [randomUUID(), randomUUID(), randomUUID()]
  const { code } = fixture.network
  const hasNonce = family === 'evm' || family === 'xrp' || family === 'stellar'
  const expires = family !== 'evm' && family !== 'utxo'
  const unsigned = setup.unsigned ?? { network: code, bytes: '00ff', inputs: [] }
  await database.get().query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type, source_id,
       destination_type, destination_id, state, status, request, plan)
     values ($1, 'WITHDRAWAL', $2, $3, $4, $5, $6, 7, $5, 'INTERNAL', $7, 'EXTERNAL', 'bob',
       'VOIDING', 'pending', '{"token":"a.b.c","path":"/","body":""}', $8)`,
    [
      id,
      alice.workspace,
      alice.subAccount,
      alice.wallets[fixture.assets[0]],
      fixture.assets[0],
      code,
      alice.omnibus,
      JSON.stringify({ reason: 'refused', ...(isCancelled ? { cancel: replacement } : {}) }),
    ],
  )
  const wallet = alice.wallets[fixture.assets[0]] as string
  const scope = { workspace: alice.workspace, asset: fixture.assets[0] }
  await post(database.get(), 'deposit', randomUUID(), [
    { ...scope, kind: 'chain', amount: -7n },
    { ...scope, wallet, kind: 'reserved', amount: 7n },
  ])
  const submittedAt = isSubmitted ? new Date(1000) : null
  const insert = (values: unknown[]) =>
    database.get().query(
      `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
         fee_max, valid_until, shown_at, workspace_id, hash)
       values ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11)`,
      values,
    )
  await insert([
    attempt,
    id,
    code,
    'BUILT',
    hasNonce ? alice.omnibus : null,
    hasNonce ? 5 : null,
    JSON.stringify(unsigned),
    expires ? EXPIRES : null,
    submittedAt,
    alice.workspace,
    null,
  ])
  let isLost = false
  const states = new Map(nodes.map((state, at) => [at + 1, state]))
  const voids: { node: number; force: boolean }[] = []
  const call = async (node: number, _method: string, path: string, body: { force?: boolean }) => {
    const state = states.get(node)!
    if (state === 'away') throw new NodeUnavailable(node, 'is away')
    const isBound = state !== 'untouched'
    if (path === '/withdraw') {
      if (isLost)
        await database
          .get()
          .query('update transactions set lease_token = gen_random_uuid() where id = $1', [id])
      const statement = {
        ...(body as { hashes: string[]; until: number }),
        node,
        signed: isBound ? [hashOfUnsigned(unsigned as never)] : [],
        complete_since: 0,
      }
      return { statement, signature: 'cd' }
    }
    assert.equal(path, '/void')
    const hashes = state === 'signed' ? [UNSIGNED_HASH] : []
    if (isBound && !body.force)
      throw new NodeRefused(node, 409, { error: 'ALREADY_SIGNED', paying_hashes: hashes })
    voids.push({ node, force: body.force ?? false })
    const record = {
      node,
      intent: 'ab',
      transaction_id: id,
      rule: null,
      height: 1,
      voided_at: 1,
      signed: hashes,
      unfinished: state === 'begun' ? 1 : 0,
    }
    return { voided: true, record, signature: 'cd' }
  }
  const peers = nodes.map((_, at) => ({ node: at + 1 }))
  Object.assign(fixture.services, {
    keys: { get: async (_workspace: string, curve: 'secp256k1') => ({ at: KEYS.whole.at[curve] }) },
    signers: { peers, verify: () => true, call } as unknown as SignerNodes,
  })
  const rowOf = () =>
    database.get().one<TransactionRow>('select * from transactions where id = $1', [id])
  const step = async () => {
    const row = await database.get().one<TransactionRow>(
      `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1
          where id = $1 returning *`,
      [id],
    )
    await runStep(fixture.services, row as TransactionRow)
    const after = await rowOf()
    const chain = await database
      .get()
      .one<{ state: string; hash: string | null }>(
        'select state, hash from chain_transactions where id = $1',
        [attempt],
      )
    return [after?.state, chain?.state, chain?.hash]
  }
  /** Confirms another transaction of the account with the same nonce. */
  const confirmOther = async () => {
    const other = randomUUID()
    await database.get().query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee_asset, source_type, source_id, destination_type, destination_id, state, status)
       select $2, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee_asset,
         source_type, source_id, destination_type, destination_id, 'CONFIRMED', 'confirmed'
       from transactions where id = $1`,
      [id, other],
    )
    const place = hasNonce ? [alice.omnibus, 5] : [null, null]
    const otherAttempt = randomUUID()
    await insert([
      otherAttempt,
      other,
      code,
      'CONFIRMED',
      ...place,
      JSON.stringify(unsigned),
      null,
      null,
      alice.workspace,
      'other',
    ])
    return otherAttempt
  }
  /** Lets another process take the transfer over while nodes are called. */
  const loseLease = () => {
    isLost = true
  }
  return { step, states, voids, rowOf, confirmOther, alice, attempt, fixture, loseLease }
}

test('fails with two voids if the transaction was never submitted to a node', async () => {
  const { step, voids } = await failing('evm', {
    nodes: ['untouched', 'untouched', 'away'],
    isSubmitted: false,
  })
  assert.deepEqual(await step(), ['FAILED', 'VOID', null])
  assert.deepEqual(voids, [
    { node: 1, force: false },
    { node: 2, force: false },
  ])
})

test('does not fail with two clean voids while the third node is away, and fails once it returns', async () => {
  const { step, states, voids, rowOf } = await failing('evm', {
    nodes: ['untouched', 'untouched', 'away'],
  })
  assert.deepEqual(await step(), ['VOIDING', 'VOID', null])
  assert.deepEqual(voids, [])
  assert.match((await rowOf())?.last_error ?? '', /a signer node may have signed it/)
  states.set(3, 'untouched')
  assert.deepEqual(await step(), ['FAILED', 'VOID', null])
})

for (const begun of ['begun', 'signed'] as const) {
  test(`a cancelled transfer is signed again if a node has ${begun} it`, async () => {
    const { step, voids } = await failing('evm', {
      nodes: [begun, 'untouched', 'untouched'],
      isCancelled: true,
    })
    assert.deepEqual(await step(), ['SIGNING', 'BUILT', null])
    assert.deepEqual(voids, [], 'the nodes can still sign it')
  })

  test(`a refused transfer that a node has ${begun} fails once its nonce is used`, async () => {
    const { step, voids, confirmOther } = await failing('evm', {
      nodes: [begun, 'untouched', 'untouched'],
    })
    assert.deepEqual(await step(), ['VOIDING', 'VOID', null])
    assert.deepEqual(await step(), ['VOIDING', 'VOID', null])
    assert.deepEqual(voids, [])
    await confirmOther()
    assert.deepEqual(await step(), ['FAILED', 'VOID', null])
    assert.equal(voids.length, 3)
  })
}

test('a refused transfer of coins fails once a confirmed transaction has spent one of them', async () => {
  const coin = WALLETS.coin()
  const place = { nonce: null, coins: [coin], validUntil: null }
  const unsigned = WALLETS.pay('BTC', amountOf.BTC, place)
  const { step, confirmOther, alice, attempt, fixture } = await failing('utxo', {
    nodes: ['begun', 'untouched', 'untouched'],
    unsigned,
  })
  const { code } = fixture.network
  await database.get().query(
    `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin, spendable,
       block_height, workspace_id, spent_by)
     values ($1, $2, $7, $3, $4, 100000, 0, 'deposit', true, 1, $5, $6)`,
    [
      code,
      coin.txid,
      alice.omnibus,
      alice.wallets[fixture.assets[0]],
      alice.workspace,
      attempt,
      coin.vout,
    ],
  )
  assert.deepEqual(await step(), ['VOIDING', 'VOID', null])
  const spentBy = async () =>
    (await database.get().one<{ spent_by: string | null }>('select spent_by from utxos'))?.spent_by
  assert.equal(await spentBy(), null, 'another transfer may use the coin')
  assert.deepEqual(await step(), ['VOIDING', 'VOID', null])
  await database.get().query('update utxos set spent_by = $1', [await confirmOther()])
  assert.deepEqual(await step(), ['FAILED', 'VOID', null])
})

const away = async () => {
  throw new RpcUnavailable('the endpoint has not seen the expiry yet')
}

for (const family of ['xrp', 'solana'] as const) {
  test(`${family}: a transfer that a node has begun to sign fails once its expiry has passed without it`, async () => {
    const client: Record<string, unknown> = { findSigned: away }
    const { step, fixture } = await failing(
      family,
      { nodes: ['begun', 'untouched', 'away'] },
      client,
    )
    assert.deepEqual(await step(), ['VOIDING', 'BUILT', null])
    Object.assign(fixture.chain, { findSigned: async () => null })
    assert.deepEqual(await step(), ['FAILED', 'VOID', null])
  })

  test(`${family}: a transfer that was published by another party is not reported as failed`, async () => {
    const found = { hash: 'theirs', raw: 'bb' }
    const { step, voids, rowOf } = await failing(
      family,
      { nodes: ['begun', 'untouched', 'untouched'], isCancelled: true },
      { findSigned: async () => found },
    )
    assert.deepEqual(await step(), ['CONFIRMING', 'SIGNED', 'theirs'])
    assert.deepEqual(voids, [])
    assert.equal((await rowOf())?.plan.cancel ?? null, null)
  })
}

test('stellar: looks for the transaction by the hash that is signed', async () => {
  const unsigned = WALLETS.pay('XLM', amountOf.XLM, {
    nonce: 1000n,
    coins: [],
    validUntil: EXPIRES,
  })
  const asked: unknown[] = []
  const client = {
    isDead: async (hash: string) => {
      asked.push(hash)
      return false
    },
    status: async () => ({ state: 'absent' }),
  }
  const nodes: State[] = ['signed', 'untouched', 'untouched']
  const { step, fixture } = await failing('stellar', { nodes, unsigned }, client)
  const [item] = signing(fixture.services.registry, unsigned, KEYS.whole.at.ed25519)
  const hash = Buffer.from(item!.message).toString('hex')
  assert.deepEqual(await step(), ['VOIDING', 'BUILT', null])
  assert.deepEqual(asked, [hash])
  Object.assign(fixture.chain, { status: async () => ({ state: 'included' }) })
  assert.deepEqual(await step(), ['CONFIRMING', 'SIGNED', hash])
})

test('does not fail if a node names a transaction that this database does not contain', async () => {
  const { step, rowOf } = await failing('evm', {
    nodes: ['signed', 'untouched', 'untouched'],
    isSubmitted: false,
  })
  assert.deepEqual(await step(), ['VOIDING', 'BUILT', null])
  assert.match((await rowOf())?.last_error ?? '', new RegExp(UNSIGNED_HASH))
})

test('a process that has lost the transfer does not release what another one submits again', async () => {
  const { step, rowOf, attempt, loseLease } = await failing('evm', {
    nodes: ['untouched', 'untouched', 'untouched'],
  })
  loseLease()
  await step()
  const shown = await database
    .get()
    .one<{ shown_at: Date | null }>('select shown_at from chain_transactions where id = $1', [
      attempt,
    ])
  assert.notEqual(shown?.shown_at ?? null, null)
  assert.equal((await rowOf())?.state, 'VOIDING')
})

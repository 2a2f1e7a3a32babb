import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { FamilyName } from '@custody/chains'
import { useDatabase, DepositFixture } from '../../../../testing/deposits-support.ts'
import { runStep } from '../run.ts'
import type { TransactionRow } from '../transaction.ts'

/**
 * Tests of chains on which a transaction's id covers its signature, so that two signatures of one
 * message have two hashes. A node that made the nodes sign twice can publish the transaction that
 * the platform does not know. The amount must therefore not be released before the account's
 * history was read.
 */
const database = useDatabase()

async function expired(family: FamilyName, client: Record<string, unknown>) {
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  const alice = await fixture.tenant('alice')
  Object.assign(fixture.chain, client)
  const id = randomUUID()
  await database.get().query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type, source_id,
       destination_type, destination_id, state, status, hash, request)
     values ($1, 'WITHDRAWAL', $2, $3, $4, $5, $6, 7, $5, 'INTERNAL', $7, 'EXTERNAL', 'somebody',
       'CONFIRMING', 'pending', 'ours', '{}')`,
    [
      id,
      alice.workspace,
      alice.subAccount,
      alice.wallets[fixture.assets[0]],
      fixture.assets[0],
      fixture.network.code,
      alice.omnibus,
    ],
  )
  await database.get().query(
    `insert into chain_transactions (id, transaction_id, network, state, account, unsigned, signed,
       hash, fee_max, valid_until, workspace_id)
       values ($1, $2, $3, 'SIGNED', $4, '{"bytes":"00ff","inputs":[]}', 'aa', 'ours', 1, 1000,
         (select workspace_id from transactions where id = $2))`,
    [randomUUID(), id, fixture.network.code, alice.omnibus],
  )
  const step = async () => {
    const row = await database.get().one<TransactionRow>(
      `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1
          where id = $1 returning *`,
      [id],
    )
    await runStep(fixture.services, row as TransactionRow)
    const after = await database
      .get()
      .one<TransactionRow>('select * from transactions where id = $1', [id])
    const chain = await database.get().one<{
      state: string
      hash: string
      signed: string
    }>('select state, hash, signed from chain_transactions where transaction_id = $1', [id])
    return [after?.state, after?.hash, chain?.state, chain?.hash, chain?.signed]
  }
  return { world: fixture, alice, step }
}

for (const family of ['solana', 'xrp'] as const) {
  test(`${family}: accepts a transaction published under another signature, releasing nothing`, async () => {
    const queries: unknown[][] = []
    const { alice, step } = await expired(family, {
      isDead: async () => true,
      findSigned: async (...o: unknown[]) => {
        queries.push(o)
        return { hash: 'theirs', raw: 'bb' }
      },
    })
    assert.deepEqual(await step(), ['CONFIRMING', 'theirs', 'SIGNED', 'theirs', 'bb'])
    assert.deepEqual(queries, [[alice.omnibus, '00ff', 1000]])
  })

  test(`${family}: releases nothing while the history cannot be read`, async () => {
    const { step } = await expired(family, {
      isDead: async () => true,
      findSigned: async () => {
        throw new Error('the history is not kept')
      },
    })
    assert.deepEqual(await step(), ['CONFIRMING', 'ours', 'SIGNED', 'ours', 'aa'])
  })

  test(`${family}: abandons an expired transaction that was never published`, async () => {
    const { step } = await expired(family, {
      isDead: async () => true,
      findSigned: async () => null,
    })
    assert.deepEqual(await step(), [
      family === 'xrp' ? 'QUEUED' : 'VOIDING',
      'ours',
      'EXPIRED',
      'ours',
      'aa',
    ])
  })
}

for (const family of ['tron', 'stellar'] as const) {
  test(`${family}: searches an expired transaction by hash only, because no signature changes it`, async () => {
    const { step } = await expired(family, { isDead: async () => true })
    assert.equal((await step())[2], 'EXPIRED')
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathOf, familyOf, type UnsignedTransaction } from '@custody/chains'
import { connectAll } from '../../src/server/app/connect.ts'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { useDatabase } from '../deposits-support.ts'
import { publicKeyAt } from '../in-process-nodes.ts'
import { now, NonceFixture } from '../chains/nonce-fixture.ts'
import { TemplateChain } from './chain.ts'

/**
 * Tests of transfers from the request to the final state: real steps, a real database, the rules of
 * real nodes, and the chain in memory.
 */
const database = useDatabase({ migrated: true, now })
const CODE = 'TEMPLATE'
const TO = 'tmpl1qgpqyqszqgpqyqszqgpqyqszqgpqyqsz74akjy'

async function staged(
  play: (fixture: NonceFixture, chain: TemplateChain, caller: Caller) => Promise<void>,
): Promise<void> {
  const chain = new TemplateChain()
  const fixture = new NonceFixture(database.get(), 1, {
    code: CODE,
    held: 10_000_000n,
    to: TO,
    tank: false,
    chain,
    connect: (context) =>
      connectAll(
        context,
        { [CODE]: { endpoints: [{ url: 'http://template.test' }], quorum: 1 } },
        chain.fetch,
      )[0] ?? assert.fail('it is in no list'),
  })
  await fixture.open()
  try {
    await play(fixture, chain, fixture.callers[0] as Caller)
  } finally {
    fixture.close()
  }
}

const ofTransfer = <T>(id: string) =>
  database.get().query<T & object>(
    `select state, nonce::text, unsigned from chain_transactions where transaction_id = $1
        order by attempt`,
    [id],
  )

test('transfers reach their receiver, and the ledger agrees with the chain', () =>
  staged(async (fixture, chain, caller) => {
    for (let count = 0; count < 3; count++) await fixture.create(caller, 'good')
    await fixture.run(60_000)
    assert.deepEqual(await fixture.check(), { 'good CONFIRMED': 3 })
    assert.equal(chain.balances.get(TO), 3000n)
    assert.equal(chain.balances.get(fixture.addressOf(1)), 10_000_000n - 3n * (1000n + 1000n))
  }))

test('the nodes refuse to sign another amount than the caller signed', () =>
  staged(async (fixture, chain, caller) => {
    const id = await fixture.create(caller, 'good')
    let own: { state: string; unsigned: UnsignedTransaction }[] = []
    while (own.length === 0) {
      assert.ok(await fixture.turn(60_000))
      own = await ofTransfer(id)
    }
    // The altered bytes differ in the last byte of the amount, which is between the fee and the
    // key.
    const { unsigned } = own[0] as { unsigned: UnsignedTransaction }
    const altered = {
      ...unsigned,
      bytes: `${unsigned.bytes.slice(0, 62)}00${unsigned.bytes.slice(64)}`,
    }
    assert.notEqual(altered.bytes, unsigned.bytes)
    await database
      .get()
      .query('update chain_transactions set unsigned = $2 where transaction_id = $1', [
        id,
        JSON.stringify(altered),
      ])
    fixture.fates.set(id, 'pay')
    await fixture.run(60_000)
    assert.deepEqual(await fixture.check(), { 'pay FAILED': 1 })
    const row = await database
      .get()
      .one<{ reason: string }>('select failure_reason reason from transactions where id = $1', [id])
    assert.match(row?.reason ?? '', /the signer nodes reject it: .*amount/i)
    assert.equal(chain.balances.get(TO), undefined)
  }))

test('an expired transfer is rebuilt with the same sequence number, and pays once', () =>
  staged(async (fixture, chain, caller) => {
    const id = await fixture.create(caller, 'good')
    while (chain.pool.size === 0) assert.ok(await fixture.turn(60_000))
    // No block includes the transaction before it expires.
    chain.ahead = 700
    await fixture.run(120_000)
    assert.deepEqual(await fixture.check(), { 'good CONFIRMED': 1 })
    assert.deepEqual(
      (await ofTransfer<{ state: string; nonce: string }>(id)).map(({ state, nonce }) => [
        state,
        nonce,
      ]),
      [
        ['VOID', '0'],
        ['CONFIRMED', '0'],
      ],
    )
    assert.equal(chain.balances.get(TO), 1000n)
  }))

test('a deposit is credited, and swept to the omnibus address', () =>
  staged(async (fixture, chain, caller) => {
    const { workspaceId, subAccountId } = caller
    const deposit = familyOf(fixture.network).address(
      fixture.network,
      publicKeyAt(pathOf(fixture.network, 1, 1)),
    )
    await database.get().query(
      `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
          kind) values ($1, $2, $3, $4, 1, 'deposit')`,
      [CODE, deposit, workspaceId, subAccountId],
    )
    await database.get().query(
      `insert into wallet_addresses (workspace_id, wallet_id, network,
          address) select workspace_id, id, network, $2 from wallets where sub_account_id = $1`,
      [subAccountId, deposit],
    )
    chain.pay(deposit, 500_000n)
    for (let count = 0; count < 3; count++) chain.mine()
    await fixture.scan()
    await fixture.run(60_000)
    assert.deepEqual(await fixture.check(), {})
    const kinds = await database
      .get()
      .query<{ kind: string; state: string }>('select kind, state from transactions order by kind')
    assert.deepEqual(
      kinds.map(({ kind, state }) => `${kind} ${state}`),
      ['DEPOSIT SWEPT', 'SWEEP CONFIRMED'],
    )
    assert.equal(chain.balances.get(deposit), 0n)
    assert.equal(chain.balances.get(fixture.addressOf(1)), 10_000_000n + 500_000n - 1000n)
  }))

import assert from 'node:assert/strict'
import type { Application } from '../../server/app/application.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { readBody } from '../http/validate.ts'
import { createInvoice } from '../../commerce/invoices/create-invoice.ts'
import { lookAtDue } from '../../commerce/invoices/loop.ts'
import { lookAtMempool, PoolMemory } from '../../commerce/invoices/mempool.ts'
import { getInvoice } from '../../commerce/invoices/read-invoice.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of coins in forms that only one chain has, from a local node to a wallet and back: Dash's
 * special transactions, CashTokens and MWEB.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-special-coins-'))
let devnet: Devnet

const DASH: WalletAddress = {
  code: 'DASH',
  to: 'yNPbcFfabtNmmxKdGwhHomdYfVs6gikbPf',
  held: '1',
  amount: '3.5',
}
const BCH: WalletAddress = { code: 'BCH', to: '', held: '1', amount: '0.99999' }
const LTC: WalletAddress = { code: 'LTC', to: '', held: '1', amount: '0.5' }

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(
  place: WalletAddress,
  run: (fixture: FamilyFixture) => Promise<void>,
): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    await fixture.open()
    await run(fixture)
  } finally {
    await fixture.close()
  }
}

const rpc = async <T>(code: string, method: string, ...params: unknown[]): Promise<T> => {
  const answer = await fetch(`${devnet.url}/${code.toLowerCase()}`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return ((await answer.json()) as { result: T }).result
}
const COIN = 100_000_000n

test('DASH: credits a credit pool withdrawal and a mining payout, and one transfer spends both', async () => {
  await staged(DASH, async (fixture) => {
    const before = await fixture.available()
    const { hash } = await fixture.control({
      command: 'special',
      kind: 'asset-unlock',
      address: fixture.source,
      amount: '2',
    })
    await fixture.scan()
    await fixture.run()
    assert.equal(await fixture.available(), before + 2n * COIN)
    await fixture.control({ command: 'mine', blocks: 1, address: fixture.source })
    // A coinbase output is credited once it can be spent.
    await fixture.control({ command: 'mine', blocks: 100 })
    await fixture.scan()
    await fixture.run()
    const held = await fixture.available()
    assert.ok(held > before + 2n * COIN, `${held} are available`)
    const id = await fixture.create('all but the fee', {
      amount: `${(held - 100_000n) / COIN}.${((held - 100_000n) % COIN).toString().padStart(8, '0')}`,
    })
    await fixture.run()
    const sent = await fixture.read(id)
    assert.equal(sent.state, 'CONFIRMED', JSON.stringify(sent))
    const { vin } = await rpc<{ vin: { txid: string }[] }>(
      'DASH',
      'getrawtransaction',
      sent.hash,
      true,
    )
    assert.ok(vin.length === 3 && vin.some(({ txid }) => txid === hash), JSON.stringify(vin))
    await fixture.check()
  })
})

test('BCH: never credits or spends an output with a CashToken, even for the whole balance', async () => {
  await staged({ ...BCH, to: await rpc('BCH', 'getnewaddress') }, async (fixture) => {
    const before = await fixture.available()
    const tokens: { hash: string; vout: number }[] = []
    for (const more of [{ tokens: '5' }, { nft: 'mutable', commitment: 'ab' }]) {
      const hash = (
        await fixture.control({
          command: 'special',
          kind: 'token',
          address: fixture.source,
          amount: '0.5',
          ...more,
        })
      )['hash'] as string
      const { vout } = await rpc<{ vout: { n: number; tokenData?: object }[] }>(
        'BCH',
        'getrawtransaction',
        hash,
        true,
      )
      tokens.push({ hash, vout: vout.find(({ tokenData }) => tokenData)?.n as number })
    }
    await fixture.scan()
    await fixture.run()
    assert.equal(await fixture.available(), before)
    const id = await fixture.create('everything')
    await fixture.run()
    assert.equal((await fixture.read(id)).state, 'CONFIRMED')
    for (const { hash, vout } of tokens)
      assert.ok(await rpc('BCH', 'gettxout', hash, vout), 'the token is unspent')
    await fixture.check()
  })
})

test('LTC: reads the mempool despite MWEB transactions, and credits payments out of MWEB', async () => {
  await staged(LTC, async (fixture) => {
    const [chain] = fixture.services.networks.all()
    const before = await fixture.available()
    await fixture.control({
      command: 'fund',
      asset: 'LTC',
      address: await rpc('LTC', 'getnewaddress'),
      amount: '1',
    })
    const { hash } = await fixture.control({
      command: 'special',
      kind: 'mweb',
      address: fixture.source,
      amount: '2',
    })
    await fixture.control({ command: 'special', kind: 'mweb' })
    const paid = await rpc<string>('LTC', 'sendtoaddress', fixture.source, 0.25)
    const mempool = chain!.mempool!
    const waiting = await mempool.waiting()
    assert.ok(waiting.includes(hash as string) && waiting.includes(paid), 'the pool has both')
    const seen = await mempool.transfers(waiting)
    assert.deepEqual(
      seen
        .filter(({ address }) => address === fixture.source)
        .map(({ txid, amount }) => [txid, amount]),
      [[paid, 25_000_000n]],
    )
    await fixture.control({ command: 'mine', blocks: 1 })
    await fixture.scan()
    await fixture.run()
    assert.equal(await fixture.available(), before + 2n * COIN + 25_000_000n)
    await fixture.check()
  })
})

test('LTC: an invoice is Processing in the mempool and Paid after its block, despite MWEB', async () => {
  await staged(LTC, async (fixture) => {
    const [chain] = fixture.services.networks.all()
    const ask = async (endpoint: Endpoint<Application>, body?: object, params?: object) => {
      const { text, body: answer } = await endpoint.handler(
        {
          caller: fixture.caller,
          body: endpoint.body ? readBody(endpoint.body, JSON.stringify(body)) : undefined,
          query: undefined,
          params,
          signed: undefined as never,
          askedAt: fixture.services.environment.now(),
        },
        fixture.services,
      )
      return plain(parseJson(text ?? stringifyJson(answer))) as {
        inv_id: string
        inv_status: string
        address: string
      }
    }
    const memory = new PoolMemory()
    const look = async () => {
      await lookAtMempool(fixture.services, chain!, chain!.mempool!, memory)
      while ((await lookAtDue(fixture.services)) > 0);
    }
    const { inv_id: id, address } = await ask(createInvoice, { asset: 'LTC', amount: 0.25 })
    const status = async () => (await ask(getInvoice, undefined, { id })).inv_status
    await fixture.control({
      command: 'fund',
      asset: 'LTC',
      address: await rpc('LTC', 'getnewaddress'),
      amount: '1',
    })
    const { hash } = await fixture.control({ command: 'special', kind: 'mweb' })
    await look()
    assert.equal(await status(), 'Pending')
    await fixture.control({
      command: 'special',
      kind: 'mweb',
      address: fixture.source,
      amount: '2',
    })
    await rpc('LTC', 'sendtoaddress', address, 0.25)
    assert.ok(
      (await chain!.mempool!.waiting()).includes(hash as string),
      'the transaction of the extension blocks waits beside the payment',
    )
    await look()
    assert.equal(await status(), 'Processing')
    await fixture.control({ command: 'mine', blocks: 1 })
    await fixture.scan()
    await fixture.run()
    await look()
    assert.equal(await status(), 'Paid')
  })
})

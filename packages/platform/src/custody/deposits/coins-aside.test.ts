import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Fetch } from '@custody/chains'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { runRescan, takeRescan } from './rescan.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { listCoinsAside } from '../wallets/list-coins-aside.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of outputs with CashTokens at own addresses: the scan of a local Bitcoin Cash chain finds
 * them, and a workspace reads them as a list.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-coins-aside-'))
let devnet: Devnet

const BCH: WalletAddress = { code: 'BCH', to: '', held: '1', amount: '0.1' }

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Coin {
  id: string
  asset: string
  network: string
  txid: string
  vout: string
  address: string
  amount: string
  reason: string
  token: {
    category: string
    amount: string
    nft: { capability: string; commitment: string } | null
  } | null
  block_height: string
  block_hash: string
  found_at: string
}
interface Output {
  n: number
  tokenData?: { category: string; amount: string; nft?: { capability: string; commitment: string } }
}

async function staged(run: (fixture: FamilyFixture) => Promise<void>, ask?: Fetch): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, BCH, clock, ask)
  try {
    await fixture.open()
    await database.admin().query('delete from rescans')
    await run(fixture)
  } finally {
    await fixture.close()
  }
}

async function list(fixture: FamilyFixture, caller: Caller = fixture.caller): Promise<Coin[]> {
  const { body } = await listCoinsAside.handler(
    {
      caller,
      body: undefined,
      query: { limit: 100 },
      params: undefined,
      signed: undefined as never,
      askedAt: 0,
    },
    fixture.services,
  )
  return (plain(parseJson(stringifyJson(body))) as { data: Coin[] }).data
}

async function rpc<T>(method: string, ...params: unknown[]): Promise<T> {
  const answer = await fetch(`${devnet.url}/bch`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return ((await answer.json()) as { result: T }).result
}

const pay = async (fixture: FamilyFixture, more: Record<string, unknown>): Promise<string> =>
  (
    await fixture.control({
      command: 'special',
      kind: 'token',
      address: fixture.source,
      amount: '0.5',
      ...more,
    })
  )['hash'] as string

const rescan = async ({ services }: FamilyFixture) => {
  const [chain] = services.networks.all()
  const head = await database
    .get()
    .one<{ height: string }>(`select height::text from network_scans where network = 'BCH'`)
  const token = await takeRescan(services, 'BCH', 1, Number(head?.height))
  assert.ok(token !== null && chain !== undefined)
  await runRescan(services, chain, token)
}

/**
 * Creates a caller in another sub-account.
 * @param workspaceId workspace of the sub-account; default: a new workspace
 */
async function another(fixture: FamilyFixture, workspaceId?: string): Promise<Caller> {
  const workspace =
    workspaceId ??
    ((
      await database
        .get()
        .one<{ id: string }>(`insert into workspaces (name) values ('other') returning id`, [])
    )?.id as string)
  const subAccount = (
    await database.get().one<{ id: string }>(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'second', 2)
          returning id`,
      [workspace],
    )
  )?.id as string
  return {
    ...fixture.caller,
    apiKey: randomUUID(),
    workspaceId: workspace,
    workspace: 'other',
    subAccountId: subAccount,
    subAccountIndex: 2,
  }
}

test('lists each output with CashTokens once, to its own sub-account, without crediting it', async () => {
  await staged(async (fixture) => {
    const available = await fixture.available()
    const fungible = await pay(fixture, { tokens: '5' })
    const nft = await pay(fixture, { nft: 'mutable', commitment: 'ab' })
    await fixture.scan()
    await fixture.run()
    await rescan(fixture)
    const coins = (await list(fixture)).sort(
      (a, b) => Number(a.block_height) - Number(b.block_height),
    )
    assert.equal(await fixture.available(), available)
    assert.deepEqual(
      coins.map(({ txid }) => txid),
      [fungible, nft],
    )
    for (const coin of coins) {
      const { vout, blockhash } = await rpc<{ vout: Output[]; blockhash: string }>(
        'getrawtransaction',
        coin.txid,
        true,
      )
      const output = vout.find(({ tokenData }) => tokenData) as Output
      const { category, amount, nft: shown } = output.tokenData as NonNullable<Output['tokenData']>
      assert.match(category, /^[0-9a-f]{64}$/)
      assert.deepEqual(coin, {
        ...coin,
        asset: 'BCH',
        network: 'BCH',
        vout: String(output.n),
        address: fixture.source,
        amount: '0.5',
        reason: 'CASH_TOKENS',
        token: { category, amount, nft: shown ?? null },
        block_hash: blockhash,
        found_at: new Date(coin.found_at).toISOString(),
      })
    }
    assert.deepEqual(
      coins.map(({ token }) => [token?.amount, token?.nft]),
      [
        ['5', null],
        ['0', { capability: 'mutable', commitment: 'ab' }],
      ],
    )
    assert.deepEqual(
      await list(fixture, await another(fixture)),
      [],
      'another workspace sees nothing',
    )
    assert.deepEqual(
      await list(fixture, await another(fixture, fixture.caller.workspaceId)),
      [],
      'another sub-account sees nothing',
    )
    await fixture.check()
  })
})

test('a reorganisation removes an output from the list, and mining it again lists it again', async () => {
  await staged(async (fixture) => {
    const txid = await pay(fixture, { tokens: '5' })
    await fixture.scan()
    const [before] = await list(fixture)
    assert.equal(before?.txid, txid)
    const gone = await fixture.control({ command: 'reorg', depth: 1 })
    assert.equal(typeof gone['height'], 'number')
    await fixture.scan()
    assert.deepEqual(await list(fixture), [])
    await fixture.control({ command: 'mine', blocks: 1 })
    await fixture.scan()
    const { blockhash } = await rpc<{ blockhash: string }>('getrawtransaction', txid, true)
    assert.deepEqual(
      (await list(fixture)).map((coin) => [coin.txid, coin.block_hash]),
      [[txid, blockhash]],
    )
    assert.notEqual(blockhash, before?.block_hash)
  })
})

test('a rescan lists an output that the endpoint had omitted, once however often it runs', async () => {
  let isHidden = true
  const hiding: Fetch = async (url, init) => {
    const response = await fetch(url, init)
    if (!isHidden || !String(init.body).includes('"getblock"')) return response
    const answer = (await response.json()) as { result: { tx?: { vout?: Output[] }[] } }
    for (const each of answer.result.tx ?? [])
      each.vout = (each.vout ?? []).filter(({ tokenData }) => !tokenData)
    return Response.json(answer)
  }
  await staged(async (fixture) => {
    const available = await fixture.available()
    const txid = await pay(fixture, { tokens: '7' })
    await fixture.scan()
    await fixture.run()
    assert.deepEqual(await list(fixture), [], 'the endpoint hides it')
    isHidden = false
    await rescan(fixture)
    await rescan(fixture)
    assert.deepEqual(
      (await list(fixture)).map((coin) => [coin.txid, coin.token?.amount]),
      [[txid, '7']],
    )
    assert.equal(await fixture.available(), available)
  }, hiding)
})

test('lists an output once if the process ends right after the block was stored', async () => {
  await staged(async (fixture) => {
    const txid = await pay(fixture, { tokens: '5' })
    fixture.crashAt = 'scan.block'
    await assert.rejects(fixture.scan(), /the process ended here/)
    await fixture.scan()
    assert.deepEqual(
      (await list(fixture)).map((coin) => coin.txid),
      [txid],
    )
  })
})

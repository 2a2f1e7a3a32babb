import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadRegistry, type Asset, type Network } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { momentOf, PastNode } from '../../../../devnet/testing/past-node.ts'
import { toldTime } from '../../../../devnet/src/timing.ts'
import { chainsFetch } from '../../../testing/chains/chains-fetch.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { systemEnvironment } from '../../core/environment.ts'
import type { Chain, ChainContext } from '../../core/engine/chain.ts'
import { connectAll } from '../../server/app/connect.ts'
import { refusalSoon } from './payment.ts'

/**
 * Tests of the check of a payment at its request while an endpoint is behind: one that does not know
 * the destination yet refuses payments that the chain allows.
 */
const registry = loadRegistry('local')
/** Networks whose chains refuse a payment that is too small to create its destination. */
const PLACES = [
  { code: 'XRP', to: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', held: '20', amount: 10_000n },
  {
    code: 'XLM',
    to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    held: '5',
    amount: 5_000_000n,
  },
  {
    code: 'SOL',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    held: '1',
    amount: 1000n,
  },
] as const
const home = mkdtempSync(join(tmpdir(), 'custody-refusal-old-state-'))
const startMs = Date.UTC(2030, 0, 1)
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/** Returns a chain with these endpoints, of which the platform has read a block. */
function chainOver(code: string, scanned: number, hosts: Record<string, typeof fetch>): Chain {
  const notAsked = async () => assert.fail('not asked')
  const database: Queryable = {
    one: async <T>() => ({ height: String(scanned), trusted_until: null }) as T,
    query: notAsked,
    now: () => new Date(startMs),
    emit: notAsked,
    emitAudit: notAsked,
  }
  const context: ChainContext = {
    registry,
    environment: systemEnvironment(),
    database,
    keys: { get: notAsked },
    addresses: { omnibus: notAsked, change: notAsked },
  }
  const endpoints = Object.keys(hosts).map((host) => ({
    url: `http://${host}/${code.toLowerCase()}`,
  }))
  const ask = (async (url, init) => {
    const { host, pathname } = new URL(String(url))
    return (hosts[host] as typeof fetch)(`${devnet.url}${pathname}`, init)
  }) as typeof fetch
  const [chain] = connectAll(context, { [code]: { endpoints, quorum: 1 } }, ask)
  return chain as Chain
}

for (const { code, to, held, amount } of PLACES) {
  test(`${code}: an endpoint that is behind refuses no payment to a destination that it does not know`, async () => {
    const { native_asset: name } = registry.network(code) as Network
    const asset = registry.asset(name) as Asset
    const chain = devnet.chains.find((each) => each.code === code)
    assert.ok(chain)
    const before = await momentOf(home, chain)
    const payment = { to, tag: null, amount, asset }
    const environment = systemEnvironment()
    const refused = (each: Chain) => refusalSoon({ environment }, each, payment)
    const present = chainsFetch(devnet)
    assert.match(
      String((await refused(chainOver(code, before.height, { present })))?.reason),
      /does not exist|account/,
      'the destination does not exist',
    )
    await chain.fund({
      asset: name,
      address: to,
      amount: held,
      tag: null,
      tokens: undefined,
      delivered: undefined,
    })
    const { height } = await momentOf(home, chain)
    const node = await PastNode.open(code, before, {
      source: home,
      home: join(home, `behind-${code}`),
      timing: toldTime(() => startMs),
    })
    try {
      const behind = chainsFetch({ url: devnet.url, answer: (request) => node.answer(request) })
      assert.equal(await refused(chainOver(code, height, { behind })), null)
      assert.equal(await refused(chainOver(code, height, { behind, present })), null)
      assert.equal(await refused(chainOver(code, height, { present })), null)
    } finally {
      node.close()
    }
  })
}

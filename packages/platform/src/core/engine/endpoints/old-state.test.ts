import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { StrKey } from '@stellar/stellar-sdk'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests of an endpoint that is behind, as geth answers during a sync, after it was killed, or as one
 * of several nodes behind a load balancer: about its own state, correctly, and without a warning.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-old-state-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.25' }
const STELLAR = {
  code: 'XLM',
  to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  held: '500',
  amount: '2.3456789',
}
let devnet: Devnet
let fixture: FamilyFixture
/** Height at which an endpoint stands; absent: it is at the head. */
let standsAt: Record<string, number> = {}
let estimates: string[] = []

type Json = Record<string, unknown>
const answered = (id: unknown, more: Json) => Response.json({ jsonrpc: '2.0', id, ...more })

/** Sends a request to the local chain, as an endpoint that stands at a height answers it. */
const ask: typeof fetch = async (url, init) => {
  const { hostname: host } = new URL(String(url))
  const request = JSON.parse(String(init?.body)) as { id: unknown; method: string; params: Json[] }
  const { id, method, params } = request
  if (method === 'eth_estimateGas') estimates.push(host)
  const at = standsAt[host]
  const send = (body: object) =>
    fetch(`${devnet.url}/eth`, { ...init, body: JSON.stringify({ ...request, ...body }) })
  if (at === undefined) return send({})
  const hex = `0x${at.toString(16)}`
  // A payment that the sender could not make in this state (geth 1.17.10).
  if (method === 'eth_estimateGas')
    return answered(id, {
      error: {
        code: -32000,
        message: `insufficient funds for gas * price + value: have 0 want ${String(params[0]?.['value'])}`,
      },
    })
  // Before the consensus layer has named one.
  if (params[0] === ('finalized' as unknown))
    return answered(id, { error: { code: -32000, message: 'finalized block not found' } })
  if (method === 'eth_blockNumber') return answered(id, { result: hex })
  const named = params.map((each) =>
    ['latest', 'pending', 'safe'].includes(String(each)) ? hex : each,
  )
  if (method === 'eth_getBlockByNumber' && Number(named[0]) > at)
    return answered(id, { result: null })
  if (method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash') {
    const response = (await (await send({})).json()) as { result: { blockNumber?: string } | null }
    const isLater = Number(response.result?.blockNumber ?? Number.POSITIVE_INFINITY) > at
    return answered(id, { result: isLater ? null : response.result })
  }
  return send({ params: named })
}

/** Like {@link ask} for Stellar: the endpoint stands before the ledger that created the payee's account. */
const askStellar: typeof fetch = async (url, init) => {
  const at = standsAt[new URL(String(url)).hostname]
  const request = JSON.parse(String(init?.body)) as { method: string }
  const answer = (await (await fetch(`${devnet.url}/xlm`, init)).json()) as { result?: Json }
  const { result } = answer
  if (at !== undefined && result) {
    if (request.method === 'getLatestLedger') result['sequence'] = at
    const account = Buffer.from(StrKey.decodeEd25519PublicKey(STELLAR.to))
    if (request.method === 'getLedgerEntries')
      result['entries'] = (result['entries'] as { key: string }[]).filter(
        ({ key }) => !Buffer.from(key, 'base64').includes(account),
      )
  }
  return Response.json(answer)
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(() => {
  standsAt = {}
  estimates = []
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function open(hosts: string[], place = PLACE, send = ask): Promise<void> {
  fixture = new FamilyFixture(database.get(), devnet, place, clock, send, {
    endpoints: hosts.map((host) => ({ url: `http://${host}/${place.code.toLowerCase()}` })),
    quorum: 1,
  })
  await fixture.open()
}
const reasonOf = async (id: string) => {
  const { status, last_error: reason, plan } = await fixture.read(id)
  return { status, reason, code: (plan as Json)['waits'] }
}
/** Runs the transfer's step many times, longer than any transfer is retried before it fails. */
async function insist(id: string): Promise<void> {
  for (let turn = 0; turn < 40; turn++) {
    await fixture.step()
    clock.advance(30_000)
  }
  assert.equal((await fixture.read(id)).status, 'pending')
}

test('a transfer waits for the only endpoint while it is behind, and is then paid once', async () => {
  await open(['a'])
  const id = await fixture.create('behind')
  standsAt['a'] = 0
  await insist(id)
  const { reason } = await reasonOf(id)
  assert.match(
    String(reason),
    /no endpoint is current \(a: it is behind: its newest block is 0, and block \d+ was already read\)/,
  )
  standsAt = {}
  await fixture.run()
  assert.equal((await fixture.read(id)).status, 'confirmed')
  assert.equal(await fixture.onChain(id), 1)
  await fixture.check()
})

test('if the first endpoint is behind, a current one decides, and the transfer is paid at once', async () => {
  await open(['a', 'b'])
  const id = await fixture.create('second')
  standsAt['a'] = 0
  await fixture.run()
  assert.equal((await fixture.read(id)).status, 'confirmed')
  assert.ok(estimates.includes('b'))
  standsAt = {}
  assert.equal(await fixture.onChain(id), 1)
  await fixture.run()
  await fixture.check()
})

test('a payment does not create an account again that an endpoint behind does not have yet', async () => {
  await open(['a'], STELLAR, askStellar)
  const first = await fixture.create('creates')
  await fixture.run()
  assert.equal((await fixture.read(first)).status, 'confirmed')
  const id = await fixture.create('pays')
  // While the fee rates are known, the account is all that is asked of the endpoint.
  await fixture.services.networks.get('XLM').rates(fixture.asset)
  standsAt['a'] = 1
  for (let turn = 0; turn < 2; turn++) await fixture.step()
  assert.match(String((await reasonOf(id)).reason), /no endpoint is current \(a: it is behind/)
  standsAt = {}
  await fixture.run()
  assert.equal((await fixture.read(id)).status, 'confirmed')
  await fixture.check()
})

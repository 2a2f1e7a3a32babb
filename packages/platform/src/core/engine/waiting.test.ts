import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { NoFeeEstimate, type Fetch } from '@custody/chains'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { endpoints } from '../../server/app/endpoints.ts'
import { advance, claim } from './lease.ts'
import { codeOf, reasonFor, WAIT_CODES } from './waiting.ts'
import { Callers } from '../http/authentication/callers.ts'
import { buildServer } from '../http/server.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of the reason for which a transfer waits, as its caller reads it from the real API server.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-waiting-'))
const ETH = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000AA',
  held: '5',
  amount: '1',
}
const SECRET = 'https://user:hunter2@node.example/v3/0123456789abcdef'
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Waiting {
  code: string
  reason: string
  since: string
}
interface WaitingResponse {
  status: string
  waiting: Waiting | null
}
interface ChainState {
  fixture: FamilyFixture
  id: string
  /** The response to every estimate until the fault ends. */
  trouble: { now: { code: number; message: string } | null }
  /** Returns the GET response of the transfer, and asserts that the list contains the same. */
  shown(): Promise<WaitingResponse>
}

async function staged(play: (chainState: ChainState) => Promise<void>): Promise<void> {
  const trouble: ChainState['trouble'] = { now: null }
  const troubled: Fetch = async (url, init) => {
    const { method, id } = JSON.parse(String(init.body)) as { method: string; id: number }
    return trouble.now && method === 'eth_estimateGas'
      ? Response.json({ jsonrpc: '2.0', id, error: trouble.now })
      : fetch(url, init)
  }
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock, troubled)
  await fixture.open()
  const { apiKey, subAccountId } = fixture.caller
  await fixture.database.query(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem)
      values ($1, $2, 'full', $3)`,
    [apiKey, subAccountId, PUBLIC_KEY],
  )
  Object.assign(fixture.services, {
    callers: new Callers(fixture.database, fixture.services.environment),
  })
  Object.assign(fixture.services.settings, {
    rateLimit: 1_000_000,
    rateScope: 'key',
    trustProxy: 0,
    authLegacy: false,
  })
  const server = await buildServer(fixture.services, endpoints)
  await server.listen({ port: 0, host: '127.0.0.1' })
  const base = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
  const get = async (uri: string): Promise<Record<string, unknown>> => {
    const request = await signRequest({
      apiKey,
      privateKey: PRIVATE_KEY,
      method: 'GET',
      uri,
      now: Math.floor(clock.now() / 1000),
    })
    const answer = await fetch(`${base}${uri}`, { headers: requestHeaders(request, apiKey) })
    const text = await answer.text()
    assert.equal(answer.status, 200, text)
    return JSON.parse(text) as Record<string, unknown>
  }
  try {
    const id = await fixture.create('sent')
    const shown = async (): Promise<WaitingResponse> => {
      const one = (await get(`/dac/v1/transaction/${id}`)) as unknown as WaitingResponse
      const { data } = (await get('/dac/v1/transactions?sequence_id=sent')) as unknown as {
        data: WaitingResponse[]
      }
      assert.deepEqual(
        data.map(({ waiting }) => waiting),
        [one.waiting],
      )
      return one
    }
    await play({ fixture: fixture, id, trouble, shown })
    trouble.now = null
    fixture.fault = undefined
    await fixture.run()
    assert.deepEqual(await shown().then(({ status, waiting }) => ({ status, waiting })), {
      status: 'confirmed',
      waiting: null,
    })
  } finally {
    await server.close()
    await fixture.close()
  }
}

async function look({ fixture, id }: ChainState): Promise<void> {
  await fixture.database.query('update transactions set next_run_at = $2 where id = $1', [
    id,
    fixture.database.now(),
  ])
  await fixture.step()
}

async function waitsFor(chainState: ChainState, code: string): Promise<Waiting> {
  for (let turns = 0; turns < 100; turns++) {
    const { waiting } = await chainState.shown()
    if (waiting?.code === code) return waiting
    await look(chainState)
  }
  return assert.fail(`never ${code}: ${JSON.stringify(await chainState.fixture.pending())}`)
}

test('a cancellation during a step does not wait until the step would be repeated', async () => {
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await fixture.open()
    const id = await fixture.create('cancelled during a step')
    const [row] = await claim(fixture.services, 16)
    assert.equal(row?.id, id)
    await fixture.cancel(id)
    // As for a transfer that waits for approvals.
    await advance(fixture.database, row, { waits: 'APPROVAL', run_in_ms: 600_000 })
    while (await fixture.step());
    assert.equal((await fixture.read(id)).state, 'CANCELLED')
  } finally {
    await fixture.close()
  }
})

test('a transfer that waits for a fee estimate has the wait code FEE_ESTIMATE', () => {
  assert.equal(codeOf(new NoFeeEstimate('BTC', 'low'), 'QUEUED'), 'FEE_ESTIMATE')
})

test('a transfer that waits for a failing endpoint has the wait code ENDPOINT', () =>
  staged(async (chainState) => {
    chainState.trouble.now = { code: -32005, message: `rate limited at ${SECRET}` }
    const first = await waitsFor(chainState, 'ENDPOINT')
    assert.deepEqual(first, { code: 'ENDPOINT', reason: reasonFor('ENDPOINT'), since: first.since })
    assert.ok(
      (await chainState.fixture.read(chainState.id)).last_error?.includes('rate limited'),
      'the operator sees the text',
    )
    clock.advance(60_000)
    await look(chainState)
    assert.deepEqual(
      (await chainState.shown()).waiting,
      first,
      'the time stays while the code does',
    )
    // A different reason has its own time since which the transfer waits.
    chainState.trouble.now = { code: 3, message: `execution reverted: ${SECRET}` }
    const second = await waitsFor(chainState, 'CHAIN_REFUSAL')
    assert.ok(Date.parse(second.since) >= Date.parse(first.since) + 60_000)
    assert.equal(second.reason, reasonFor('CHAIN_REFUSAL'))
  }))

test('a transfer that waits for gas funding has the wait code GAS_TANK', () =>
  staged(async (chainState) => {
    await chainState.fixture.runTo(chainState.id, 'FUELING')
    await waitsFor(chainState, 'GAS_TANK')
  }))

test('a transfer that waits for unresponsive signer nodes has the wait code SIGNER_NODES', () =>
  staged(async (chainState) => {
    await chainState.fixture.runTo(chainState.id, 'SIGNING')
    chainState.fixture.fault = 'away'
    await waitsFor(chainState, 'SIGNER_NODES')
  }))

test('a transfer that waits because of a high gas price has the wait code NETWORK_FEES', () =>
  staged(async (chainState) => {
    const set = (most: string | null) =>
      chainState.fixture.database.query(
        `update gas_tanks set max_gas_price = $2 where workspace_id = $1 and network = 'ETH'`,
        [chainState.fixture.caller.workspaceId, most],
      )
    await set('1')
    await waitsFor(chainState, 'NETWORK_FEES')
    await set(null)
  }))

test('every wait code has a sentence of bounded length', () => {
  for (const code of WAIT_CODES) assert.match(reasonFor(code), /^[A-Z][\w ,.]{20,198}\.$/)
})

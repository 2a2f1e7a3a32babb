import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Fetch } from '@custody/chains'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { audit } from '../../../server/audit/audit.ts'
import { requeueSweepsLoop } from '../../../custody/deposits/sweeps.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests of networks on which a transfer of native coin uses more than 21,000 gas, or costs more
 * than gas times price.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-rollups-'))
const TO = '0x00000000000000000000000000000000000000AA'
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/**
 * Runs a test with a fixture of one network, and checks the ledger at the end.
 * @param o.isLeftOpen whether some work stays unfinished, so that the test checks the ledger itself
 */
async function staged(
  code: string,
  play: (fixture: FamilyFixture) => Promise<void>,
  { ask, isLeftOpen = false }: { ask?: Fetch; isLeftOpen?: boolean } = {},
): Promise<void> {
  const fixture = new FamilyFixture(
    database.get(),
    devnet,
    { code, to: TO, held: '5', amount: '1' },
    clock,
    ask,
  )
  try {
    await fixture.open()
    await play(fixture)
    if (isLeftOpen) return
    await fixture.run()
    await fixture.check()
  } finally {
    await fixture.close()
  }
}

interface Request {
  method: string
  params: { from?: string; to?: string; value?: string; data?: string }[]
}
/**
 * Returns an endpoint whose responses a test can change.
 * @param change returns the replacement of a response, or undefined to use the chain's response
 */
const endpoint =
  (change: (request: Request) => unknown): Fetch =>
  async (url, init) => {
    const { id, ...request } = JSON.parse(String(init?.body)) as Request & { id: unknown }
    const result = change(request)
    return result === undefined
      ? fetch(url, init)
      : new Response(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }
const estimateOf = ({ method, params: [call] }: Request) =>
  method === 'eth_estimateGas' ? call : undefined

interface Made {
  kind: string
  gas: number
  nonce: string
  state: string
  attempt: number
  fee: string | null
  account: string
}
/**
 * Returns all signed transactions in the order of their creation, with the gas limit of their
 * bytes.
 */
async function made(fixture: FamilyFixture): Promise<Made[]> {
  const rows = await fixture.database.query<Made & { signed: string }>(
    `select t.kind, c.signed, c.nonce::text, c.state, c.attempt, c.fee::text, c.account
      from chain_transactions c
     join transactions t on t.id = c.transaction_id where c.signed is not null
       order by t.created_at, c.attempt`,
  )
  const { parseTransaction } = await import('viem')
  return rows.map(({ signed, ...row }) => ({
    ...row,
    gas: Number(parseTransaction(`0x${signed}`).gas),
  }))
}
const of = (rows: Made[], kind: string) => rows.filter((row) => row.kind === kind)
const confirmed = async (fixture: FamilyFixture, id: string) => {
  const { status, failure_reason: reason, last_error: error } = await fixture.read(id)
  assert.equal(
    status,
    'confirmed',
    `${String(reason)} ${String(error)} ${JSON.stringify(await fixture.pending())}`,
  )
}

/**
 * Sweeps deposits to a second address. The unused fee of a native sweep stays there until it is
 * worth a sweep of its own.
 */
async function swept(fixture: FamilyFixture, amounts: Record<string, string>): Promise<void> {
  const address = await fixture.newAddress(Object.keys(amounts)[0] as string)
  for (const [asset, amount] of Object.entries(amounts))
    await fixture.control({ command: 'fund', asset, address, amount })
  await fixture.scan()
  const done = () =>
    fixture.database.query<{ asset: string }>(
      `select distinct asset from transactions where kind = 'SWEEP' and state = 'CONFIRMED'
        order by asset`,
    )
  for (let round = 0; (await done()).length < Object.keys(amounts).length; round++) {
    assert.ok(
      round < 200 && (await fixture.turn()),
      `not swept: ${JSON.stringify(await fixture.pending())}`,
    )
  }
  const { differences, dust } = await audit(fixture.services)
  assert.deepEqual([differences, dust], [[], []])
}

test('ARB: a native withdrawal is sent after the tank has also paid for its L1 data gas', () =>
  staged('ARB', async (fixture) => {
    const id = await fixture.create('native')
    await fixture.run()
    await confirmed(fixture, id)
    for (const { kind, gas } of await made(fixture))
      assert.ok(gas > 50_000, `${kind} has ${gas} gas`)
  }))

test('ARB: a token withdrawal is sent, and native and token deposits are swept', () =>
  staged(
    'ARB',
    async (fixture) => {
      const address = await fixture.openWallet('USDT_ARB')
      await fixture.control({ command: 'fund', asset: 'USDT_ARB', address, amount: '20' })
      await fixture.scan()
      await fixture.run()
      const id = await fixture.create('token', { asset: 'USDT_ARB', amount: '7' })
      await fixture.run()
      await confirmed(fixture, id)
      await swept(fixture, { ARB: '2', USDT_ARB: '3' })
      for (const { kind, gas } of await made(fixture))
        assert.ok(gas > 50_000, `${kind} has ${gas} gas`)
    },
    { isLeftOpen: true },
  ))

test('ARB: a waiting transfer can be cancelled', () =>
  staged('ARB', async (fixture) => {
    const id = await fixture.create('cancelled', { fee_rate: '5' })
    await fixture.runTo(id, 'SIGNING')
    await fixture.control({ command: 'congestion', fee_rate: '20' })
    await fixture.sentHash(id)
    await fixture.cancel(id)
    await fixture.control({ command: 'congestion', fee_rate: '0' })
    await fixture.run()
    assert.equal(
      (await fixture.read(id)).state,
      'CANCELLED',
      JSON.stringify(await fixture.read(id)),
    )
    const attempts = of(await made(fixture), 'WITHDRAWAL')
    const [{ nonce }] = attempts as [Made]
    assert.deepEqual(
      attempts.map((each) => [each.state, each.nonce]),
      [
        ['REPLACED', nonce],
        ['CONFIRMED', nonce],
      ],
    )
    assert.ok(attempts[1]!.gas > 50_000, String(attempts[1]!.gas))
  }))

test('ARB: a fuel transaction refused for too little gas is rebuilt with the same nonce', async () => {
  // Simulates that the price of the base chain rises between the plan and the broadcast.
  let stale = true
  const ask = endpoint((request) => {
    const call = estimateOf(request)
    return stale && call !== undefined && call.to?.toLowerCase() !== TO.toLowerCase()
      ? '0x5208'
      : undefined
  })
  await staged(
    'ARB',
    async (fixture) => {
      const id = await fixture.create('stale')
      await fixture
        .turnUntil('the fuel is refused', () => fixture.turnedMs > 0)
        .catch(() => undefined)
      const refused = await fixture.database.query<{ kind: string; last_error: string }>(
        `select kind, last_error from transactions where last_error like 'broadcast rejected: %'`,
      )
      assert.deepEqual(
        refused.map(({ kind }) => kind),
        ['FUEL'],
      )
      assert.match(refused[0]!.last_error, /intrinsic gas too low: have 21000, want \d+/)
      stale = false
      const next = await fixture.create('next')
      await fixture.run()
      await confirmed(fixture, id)
      await confirmed(fixture, next)
      const fuels = of(await made(fixture), 'FUEL')
      const [first, second] = fuels as [Made, Made]
      assert.deepEqual([first.gas, first.state, second.state], [21_000, 'REPLACED', 'CONFIRMED'])
      assert.equal(first.nonce, second.nonce)
      assert.ok(second.gas > 50_000, String(second.gas))
    },
    { ask },
  )
})

test("ARB: a sweep's fuel transaction refused for too little gas is rebuilt too", async () => {
  let to = ''
  const ask = endpoint((request) =>
    to !== '' && estimateOf(request)?.to?.toLowerCase() === to ? '0x5208' : undefined,
  )
  await staged(
    'ARB',
    async (fixture) => {
      const address = await fixture
        .openWallet('USDT_ARB')
        .then(() => fixture.newAddress('USDT_ARB'))
      to = address.toLowerCase()
      await fixture.control({ command: 'fund', asset: 'USDT_ARB', address, amount: '20' })
      await fixture.scan()
      const fuel = async () =>
        (
          await fixture.database.query<{ state: string; last_error: string | null }>(
            `select state, last_error from transactions where kind = 'FUEL' and destination_id = $1`,
            [address],
          )
        )[0]
      for (
        let round = 0;
        !/intrinsic gas too low/.test((await fuel())?.last_error ?? '');
        round++
      ) {
        assert.ok(
          round < 100 && (await fixture.turn()),
          `not refused: ${JSON.stringify(await fixture.pending())}`,
        )
      }
      to = ''
      await fixture.run()
      const fuels = of(await made(fixture), 'FUEL')
      assert.deepEqual(
        fuels.map(({ gas, state, nonce }) => [gas > 50_000, state, nonce]),
        [
          [false, 'REPLACED', '0'],
          [true, 'CONFIRMED', '0'],
        ],
      )
    },
    { ask },
  )
})

test('a withdrawal refused for too little gas is rebuilt within the balance of its address', async () => {
  let stale = false
  const ask = endpoint((request) => {
    const call = estimateOf(request)
    return stale && call?.to?.toLowerCase() === TO.toLowerCase() ? '0x9858' : undefined
  })
  await staged(
    'ARB',
    async (fixture) => {
      stale = true
      const id = await fixture.create('stale')
      await fixture.turnUntil('the payment is refused', () => fixture.turnedMs > 2000)
      const { last_error: error } = await fixture.read(id)
      assert.match(String(error), /intrinsic gas too low/)
      stale = false
      await fixture.run()
      await confirmed(fixture, id)
      const [first, last] = of(await made(fixture), 'WITHDRAWAL') as [Made, Made]
      assert.deepEqual(
        [first.state, last.state, first.nonce],
        ['REPLACED', 'CONFIRMED', last.nonce],
      )
      assert.equal(await fixture.onChain(id), 1)
    },
    { ask },
  )
})

test('a native sweep refused for too little gas is rebuilt with the same amount', async () => {
  let from = ''
  const ask = endpoint((request) =>
    from !== '' && estimateOf(request)?.from?.toLowerCase() === from ? '0x9858' : undefined,
  )
  await staged(
    'ARB',
    async (fixture) => {
      const address = await fixture.newAddress('ARB')
      from = address.toLowerCase()
      await fixture.control({ command: 'fund', asset: 'ARB', address, amount: '2' })
      await fixture.scan()
      const read = () =>
        fixture.database.query<{ state: string; last_error: string | null }>(
          `select state, last_error from transactions where kind = 'SWEEP' and source_id = $1
            and state <> 'QUEUED'`,
          [address],
        )
      for (
        let round = 0;
        !/intrinsic gas too low/.test((await read())[0]?.last_error ?? '');
        round++
      ) {
        assert.ok(
          round < 100 && (await fixture.turn()),
          `not refused: ${JSON.stringify(await read())}`,
        )
      }
      from = ''
      for (let round = 0; (await read())[0]?.state !== 'CONFIRMED'; round++) {
        assert.ok(
          round < 100 && (await fixture.turn()),
          `not swept: ${JSON.stringify(await read())}`,
        )
      }
      const sweeps = of(await made(fixture), 'SWEEP').filter(({ account }) => account === address)
      assert.deepEqual(
        sweeps.map(({ state, nonce }) => [state, nonce]),
        [
          ['REPLACED', '0'],
          ['CONFIRMED', '0'],
        ],
      )
      const { differences, dust } = await audit(fixture.services)
      assert.deepEqual([differences, dust], [[], []])
    },
    { ask, isLeftOpen: true },
  )
})

test('ARB: a fee estimate includes the L1 data gas, with and without a receiver', () =>
  staged('ARB', async (fixture) => {
    const id = await fixture.create('paid')
    await fixture.run()
    const [{ gas }] = of(await made(fixture), 'WITHDRAWAL') as [Made]
    const chain = fixture.services.networks.get('ARB')
    const rate = 10n ** 9n
    const question = { owner: fixture.caller, rate, amount: 10n ** 18n }
    for (const to of [null, TO]) {
      const { fee } = await chain.quote({ ...question, asset: fixture.asset, to })
      assert.ok(fee > 50_000n * rate && fee < BigInt(gas) * rate, `${fee} for ${gas} gas`)
    }
    const usdt = fixture.services.registry.asset('USDT_ARB') as typeof fixture.asset
    assert.ok(
      (await chain.quote({ ...question, amount: 1n, asset: usdt, to: null })).fee > 100_000n * rate,
    )
    await confirmed(fixture, id)
  }))

test('a withdrawal whose address lacks gas waits until its caller’s speed-up adds the rest', async () => {
  let stale = false
  const ask = endpoint((request) =>
    stale && estimateOf(request)?.to?.toLowerCase() === TO.toLowerCase() ? '0x5208' : undefined,
  )
  await staged(
    'ARB',
    async (fixture) => {
      stale = true
      const id = await fixture.create('stale')
      await fixture.turnUntil('the payment is refused', () => fixture.turnedMs > 2000)
      stale = false
      for (let round = 0; round < 30; round++) await fixture.turn()
      const { state, last_error: error } = await fixture.read(id)
      assert.equal(state, 'BROADCASTING', String(error))
      const tries = await fixture.database.query(
        'select reason from replacements where transaction_id = $1',
        [id],
      )
      assert.ok(tries.length > 0 && tries.length < 8, JSON.stringify(tries))
      await fixture.speedUp(id, { fee_level: 'high' })
      await fixture.run()
      await confirmed(fixture, id)
      assert.equal(await fixture.onChain(id), 1)
    },
    { ask },
  )
})

test('ETH: a fuel transaction estimated at 204,600 gas gets a third more gas than estimated', async () => {
  const ask = endpoint((request) => {
    const call = estimateOf(request)
    return call &&
      call.data === undefined &&
      call.to?.toLowerCase() !== TO.toLowerCase() &&
      call.to !== call.from
      ? '0x31f38'
      : undefined
  })
  await staged(
    'ETH',
    async (fixture) => {
      const id = await fixture.create('first payment')
      await fixture.run()
      await confirmed(fixture, id)
      const rows = await made(fixture)
      assert.deepEqual(
        of(rows, 'FUEL').map(({ gas }) => gas),
        [265_980],
      )
      assert.deepEqual(
        of(rows, 'WITHDRAWAL').map(({ gas }) => gas),
        [21_000],
      )
    },
    { ask },
  )
})

test('a fuel transaction mined out of gas is not rebuilt with the same gas', async () => {
  let [to, estimate] = ['', '0x5208']
  const ask = endpoint((request) => {
    const call = estimateOf(request)
    return to !== '' && call?.data === undefined && call?.to?.toLowerCase() === to
      ? estimate
      : undefined
  })
  await staged(
    'ETH',
    async (fixture) => {
      const address = await fixture
        .openWallet('USDT_ETH')
        .then(() => fixture.newAddress('USDT_ETH'))
      to = address.toLowerCase()
      // From now on, a payment to the address uses more than 21,000 gas, as after an upgrade: the
      // code at the address never ends.
      const { anvil } = await (
        devnet.chains.find(({ code }) => code === 'ETH') as unknown as {
          chain(): Promise<{
            anvil: { call(method: string, ...params: unknown[]): Promise<unknown> }
          }>
        }
      ).chain()
      await anvil.call('anvil_setCode', address, '0x5b600056')
      await fixture.control({ command: 'fund', asset: 'USDT_ETH', address, amount: '20' })
      await fixture.scan()
      await fixture.run()
      const states = (kind: string) =>
        fixture.database.query<{ state: string; failure_reason: string | null }>(
          `select state, failure_reason from transactions where kind = $1 order by created_at`,
          [kind],
        )
      assert.deepEqual(
        (await states('FUEL')).map(({ state }) => state),
        ['REVERTED'],
        JSON.stringify(await fixture.pending()),
      )
      assert.match((await states('SWEEP'))[0]?.failure_reason ?? '', /^its fuel transaction failed/)
      // From now on, the endpoint's estimate includes the upgrade: 204,600 gas.
      await anvil.call('anvil_setCode', address, '0x')
      estimate = '0x31f38'
      await fixture.control({ command: 'mine', blocks: 1 })
      await fixture.scan()
      // A failed sweep is queued again after a minute.
      clock.advance(61_000)
      await requeueSweepsLoop(fixture.services).run(new AbortController().signal)
      await fixture.run()
      assert.deepEqual(
        (await states('SWEEP')).map(({ state }) => state),
        ['FAILED', 'CONFIRMED'],
        JSON.stringify(await states('FUEL')),
      )
      assert.deepEqual(
        of(await made(fixture), 'FUEL').map(({ gas }) => gas),
        [21_000, 265_980],
      )
    },
    { ask },
  )
})

test('a transfer fails with the reason if an endpoint estimates more gas than nodes sign', async () => {
  let lies = false
  const ask = endpoint((request) => (lies && estimateOf(request) ? '0x1c9c380' : undefined))
  await staged(
    'ETH',
    async (fixture) => {
      lies = true
      const id = await fixture.create('absurd')
      await fixture.run()
      const { status, failure_reason: reason } = await fixture.read(id)
      assert.equal(status, 'failed')
      assert.match(
        String(reason),
        /its gas limit would be 39000000, and the signer nodes' maximum is 1000000/,
      )
      assert.equal(await fixture.available(), 5n * 10n ** 18n)
      lies = false
    },
    { ask },
  )
})

for (const code of ['OP_ETH', 'BASE']) {
  test(`${code}: the ledger contains the fees paid to the operator and the base chain`, () =>
    staged(
      code,
      async (fixture) => {
        const id = await fixture.create('native')
        await fixture.run()
        await confirmed(fixture, id)
        const token = await fixture.openWallet(`USDT_${code}`)
        await fixture.control({
          command: 'fund',
          asset: `USDT_${code}`,
          address: token,
          amount: '20',
        })
        await fixture.scan()
        await fixture.run()
        const second = await fixture.create('token', { asset: `USDT_${code}`, amount: '7' })
        await fixture.run()
        await confirmed(fixture, second)
        await swept(fixture, { [code]: '2', [`USDT_${code}`]: '3' })
        for (const { kind, account, fee } of await made(fixture))
          assert.ok(BigInt(fee ?? '0') > 0n, `${kind} of ${account}: ${fee}`)
      },
      { isLeftOpen: true },
    ))
}

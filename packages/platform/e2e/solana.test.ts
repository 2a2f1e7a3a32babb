// Tests of SOL and its tokens end to end, on a local chain that runs the Solana runtime.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  waitFor,
  type Transfer,
  type User,
} from '../testing/harness.ts'

const platform = new TestPlatform()
let user: User
let customer: User
let source = ''
const STRANGER = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
const NEW = 'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg'

const send = (
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
  from = user,
) =>
  call<Transfer & { code: string; message: string }>(
    from,
    'POST',
    '/dac/v1/transaction',
    transferBody(asset, amount, to, more),
  )
async function sent(
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
): Promise<Transfer> {
  const answer = await send(asset, amount, to, more)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const confirmed = async (
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
) => {
  const { id } = await sent(asset, amount, to, more)
  const done = await terminal(user, id)
  assert.equal(done.status, 'confirmed', `${done.failure_reason ?? ''}\n${platform.output}`)
  return done
}
const devnet = (command: Record<string, unknown>) => platform.operator('devnet', command)
const lamports = async (address: string) =>
  (await rpc<{ value: number }>(platform, 'SOL', 'getBalance', [address])).value
const audited = async () => {
  const { ok, differences } = await platform.operator('audit')
  assert.ok(ok, JSON.stringify(differences))
}

before(
  async () => {
    await platform.start()
    user = await platform.user('solana')
    customer = await platform.user('solana-customer')
    source = await fundedWallet(platform, user, 'SOL', '3')
  },
  { timeout: 240_000 },
)
after(async () => platform.remove())

test("credits a deposit, and keeps the chain's minimum reserve unspendable", async () => {
  assert.deepEqual(
    [(await balance(user, 'SOL')).balance, (await balance(user, 'SOL')).omnibus_balance],
    ['2.99910912', '3'],
  )
})

test('sends SOL with the exact fee of the chain, and the customer receives the whole amount', async () => {
  await call(customer, 'POST', '/dac/v1/create-wallet', { asset: 'SOL' })
  const { address } = (
    await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'SOL' })
  ).body
  const done = await confirmed('SOL', '0.5', address)
  assert.equal(done.fee, '0.000006')
  await waitFor(
    'the customer’s deposit',
    async () => (await balance(customer, 'SOL')).omnibus_balance === '0.5',
  )
  assert.equal(await lamports(source), 3_000_000_000 - 500_000_000 - 6000)
})

test('identical concurrent transfers are paid as separate transactions', async () => {
  const ids = await Promise.all([
    sent('SOL', '0.01', STRANGER),
    sent('SOL', '0.01', STRANGER),
    sent('SOL', '0.01', STRANGER),
  ])
  const done: Transfer[] = []
  for (const { id } of ids) done.push(await terminal(user, id))
  assert.deepEqual(
    done.map(({ status }) => status),
    ['confirmed', 'confirmed', 'confirmed'],
  )
  assert.equal(new Set(done.map(({ hash }) => hash)).size, 3)
  assert.equal(await lamports(STRANGER), 30_000_000)
})

test("refuses amounts below an account's minimum, invalid receivers, tags and low fees with 400", async () => {
  const cases: [string, string, Record<string, unknown>, RegExp][] = [
    ['0.0001', NEW, {}, /at least 0\.00089088 SOL are required to create it/],
    ['0.1', source, {}, /would be sent/],
    ['0.1', 'wg5iSXxsT4Bq3MtZ4FfAxarKDCc9vWGqvgSF9DG2ab7', {}, /is the contract of USDT_SOL/],
    ['0.1', NEW, { address_tag: '7' }, /no address tags/],
    ['0.1', NEW, { fee_rate: 4999 }, /at least 5000 Lamport, the minimum/],
    ['2.4695', NEW, {}, /must stay on the account/],
  ]
  for (const [amount, to, more, reason] of cases) {
    const answer = await send('SOL', amount, to, more)
    assert.equal(answer.status, 400, `${amount} ${to}: ${answer.text}`)
    assert.match(answer.text, reason)
  }
})

test('sweeps a further address: SOL pays its own fee, and the SOL wallet pays for tokens', async () => {
  const total = async (asset: string) => Number((await balance(user, asset)).omnibus_balance)
  const further = (
    await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'SOL' })
  ).body.address
  assert.notEqual(further, source)
  const sol = await total('SOL')
  await platform.fund('SOL', further, '0.25')
  await waitFor(
    'the sweep of SOL',
    async () => (await lamports(further)) === 0 && (await total('SOL')) > sol,
  )
  await waitFor(
    'its books',
    async () => Math.abs((await total('SOL')) - sol - 0.25 + 0.000006) < 1e-9,
  )
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'USDT_SOL' })
  await platform.fund('USDT_SOL', further, '7')
  await waitFor('the sweep of USDT', async () => (await balance(user, 'USDT_SOL')).balance === '7')
  // The fee consists of two signatures and the compute units; the sweep also pays the rent of the
  // omnibus address's own token account.
  await waitFor(
    'the fee of the sweep',
    async () => Math.abs((await total('SOL')) - sol - 0.25 + 0.000006 + 0.00205028) < 1e-9,
  )
  await audited()
})

test('receives tokens and sends them to an existing account or a new one, paying its rent', async () => {
  assert.equal(await fundedWallet(platform, user, 'USDC_SOL', '20'), source)
  const before = await lamports(source)
  const first = await confirmed('USDC_SOL', '1.25', STRANGER)
  assert.equal(first.fee, '0.00204528')
  assert.equal(await lamports(source), before - 2_045_280)
  const second = await confirmed('USDC_SOL', '1.25', STRANGER, { fee_rate: 6000 })
  assert.equal(second.fee, '0.000006')
  assert.equal((await balance(user, 'USDC_SOL')).balance, '17.5')
  await audited()
})

test('without SOL a token transfer is refused, and the response names the wallet', async () => {
  await fundedWallet(platform, customer, 'USDT_SOL', '5')
  const other = await platform.user('solana-poor')
  await fundedWallet(platform, other, 'USDT_SOL', '5')
  const refused = await send('USDT_SOL', '1', STRANGER, {}, other)
  assert.equal(refused.status, 400)
  assert.match(refused.text, /sub-account's SOL wallet/)
})

test('pays a transfer once if the response to its broadcast is lost', async () => {
  await devnet({ command: 'fault', network: 'SOL', mode: 'drop-answer' })
  const before = await lamports(NEW)
  const { id } = await sent('SOL', '0.02', NEW)
  const done = await terminal(user, id)
  await devnet({ command: 'fault', network: 'SOL', mode: 'heal' })
  assert.equal(done.status, 'confirmed')
  assert.equal((await lamports(NEW)) - before, 20_000_000)
})

test('a transfer is paid once or fails if the nodes are paused past its expiry', async () => {
  const held = (await balance(user, 'SOL')).balance
  const before = await lamports(NEW)
  const { id } = await platform.withoutNodes(async () => {
    const made = await sent('SOL', '0.04', NEW)
    await waitFor(
      'built',
      async () =>
        (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${made.id}`)).body.sub_status ===
        'SIGNING',
    )
    await devnet({ command: 'mine', network: 'SOL', blocks: 160 })
    return made
  })
  const done = await terminal(user, id)
  const paid = (await lamports(NEW)) - before
  if (done.status === 'confirmed') assert.equal(paid, 40_000_000)
  else {
    assert.match(done.failure_reason ?? '', /expired/)
    assert.equal(paid, 0)
    assert.equal((await balance(user, 'SOL')).balance, held)
  }
})

test('pays each transfer once if the platform is killed', async () => {
  const before = await lamports(NEW)
  await devnet({ command: 'fault', network: 'SOL', mode: 'drop-answer' })
  const ids = await Promise.all(Array.from({ length: 6 }, () => sent('SOL', '0.01', NEW)))
  await new Promise((done) => setTimeout(done, 150))
  await platform.kill()
  await platform.start()
  user.base = platform.base
  for (const { id } of ids) await assertConfirmed(user, id)
  assert.equal((await lamports(NEW)) - before, 60_000_000)
  await audited()
})

test('a transfer that the chain never accepted fails at its expiry, and its money is released', async () => {
  const held = (await balance(user, 'SOL')).balance
  const tokens = (await balance(user, 'USDC_SOL')).balance
  const prepaid = async () =>
    (await call<{ balance: string; reserved: string }>(user, 'POST', '/dac/v1/prepaid-fee', {}))
      .body
  const before = await prepaid()
  await devnet({ command: 'fault', network: 'SOL', mode: 'reject' })
  const ids = [(await sent('SOL', '0.3', NEW)).id, (await sent('USDC_SOL', '3', NEW)).id]
  for (const id of ids)
    await waitFor(
      'it is signed',
      async () =>
        (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body.sub_status ===
        'BROADCASTING',
    )
  await devnet({ command: 'mine', network: 'SOL', blocks: 152 })
  for (const id of ids) {
    const done = await terminal(user, id)
    assert.equal(done.status, 'failed')
    assert.match(done.failure_reason ?? '', /expired/)
  }
  await devnet({ command: 'fault', network: 'SOL', mode: 'heal' })
  assert.equal((await balance(user, 'SOL')).balance, held)
  assert.equal((await balance(user, 'USDC_SOL')).balance, tokens)
  assert.deepEqual(await prepaid(), before, 'the platform fee that was charged is back too')
  await audited()
})

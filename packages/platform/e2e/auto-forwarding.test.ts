import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openDatabase } from '../src/core/database/pool.ts'
import {
  assertConfirmed,
  balance,
  call,
  rpc,
  terminal,
  TestPlatform,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of standing rules: each incoming deposit is forwarded once to one destination, within the
 * caller's own limits.
 */
const platform = new TestPlatform()
let shop: User
let customer: User

interface Rule {
  id: string
  asset: string
  status: string
  min_amount: string
  daily_cap: string
  waiting: string
  reason: string | null
  destination_address: string
  address_tag: string | null
  expires_at: string
  code: string
  field: string
  message: string
}
interface Page<T> {
  data: T[]
  page: string
  limit: string
  total: string
}
interface DepositTarget {
  address: string
  address_tag: string | null
}

const PATH = '/dac/v1/auto-forwarding'
const inSeconds = (seconds = 3600) => new Date(Date.now() + seconds * 1000).toISOString()
const rest = (place: DepositTarget) => ({
  destination_address: place.address,
  ...(place.address_tag === null ? {} : { address_tag: place.address_tag }),
})
const make = (user: User, body: Record<string, unknown>) =>
  call<Rule>(user, 'POST', PATH, { expires_at: inSeconds(), ...body })
const read = async (user: User, id: string) => (await call<Rule>(user, 'GET', `${PATH}/${id}`)).body
const history = async (user: User, id: string) =>
  (await call<Page<Transfer>>(user, 'GET', `${PATH}/${id}/history`)).body
const fund = (asset: string, place: DepositTarget, amount: string) =>
  platform.operator('devnet', {
    command: 'fund',
    asset,
    address: place.address,
    amount,
    tag: place.address_tag,
  })

/** Returns a wallet's omnibus address and a deposit address of it. */
async function wallet(
  user: User,
  asset: string,
): Promise<{ omnibus: DepositTarget; deposit: DepositTarget }> {
  await call(user, 'POST', '/dac/v1/create-wallet', { asset })
  const address = async () =>
    (await call<DepositTarget>(user, 'POST', '/dac/v1/address', { asset })).body
  return { omnibus: await address(), deposit: await address() }
}
const forwarded = (user: User, id: string, count: number) =>
  waitFor(`${count} forwards of ${id}`, async () => {
    const { data } = await history(user, id)
    return data.filter(({ status }) => status === 'confirmed').length >= count ? data : null
  })
const credited = (user: User, hash: unknown) =>
  waitFor(`deposit ${String(hash)}`, async () => {
    const [transfer] = (
      await call<Page<Transfer>>(
        user,
        'GET',
        `/dac/v1/transactions?type=Deposit&id=${String(hash)}`,
      )
    ).body.data
    return transfer && transfer.status === 'confirmed' ? transfer : null
  })
const waits = (user: User, id: string, amount: string) =>
  waitFor(`${amount} waiting`, async () => {
    const rule = await read(user, id)
    return rule.waiting === amount ? rule : null
  })
async function audited(): Promise<void> {
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
  assert.match(audit.stdout, /"dust":\s*\[\]/)
}
/** Creates a user in a new sub-account, so that tests do not share rules. */
const newUser = (name: string) => platform.user('shop', { subAccount: name })

/**
 * Rule of another user, whose deposits are forwarded. When its forward appears, all earlier work
 * has been processed.
 */
let witness: { user: User; rule: string; place: DepositTarget; forwards: number } | undefined
async function lookedAtAll(): Promise<void> {
  if (!witness) {
    const user = await newUser('witness')
    const { omnibus } = await wallet(user, 'ETH')
    const to = '0x00000000000000000000000000000000000000f9'
    const { body } = await make(user, {
      asset: 'ETH',
      min_amount: 0.01,
      daily_cap: 9,
      destination_address: to,
    })
    witness = { user, rule: body.id, place: omnibus, forwards: 0 }
  }
  witness.user.base = platform.base
  await fund('ETH', witness.place, '0.02')
  await forwarded(witness.user, witness.rule, ++witness.forwards)
}

before(async () => {
  await platform.start()
  shop = await platform.user('shop')
  customer = await platform.user('customer')
})
after(() => platform.remove())

describe('forwarding rules are validated', () => {
  test('each invalid field is refused, and no rule is created', async () => {
    const { omnibus, deposit } = await wallet(shop, 'ETH')
    await wallet(shop, 'XRP')
    const { omnibus: theirs } = await wallet(customer, 'ETH')
    const good = { asset: 'ETH', min_amount: 1, daily_cap: 2, ...rest(theirs) }
    const cases: [Record<string, unknown>, string][] = [
      [{ asset: 'NOPE' }, 'asset'],
      [{ asset: 'BTC' }, 'asset'],
      [{ min_amount: 0 }, 'min_amount'],
      [{ min_amount: -1 }, 'min_amount'],
      [{ min_amount: 'x' }, 'min_amount'],
      [{ min_amount: 1e-19 }, 'min_amount'],
      [{ daily_cap: 0.5 }, 'daily_cap'],
      [{ daily_cap: '1.0000000000000000001' }, 'daily_cap'],
      [{ daily_cap: null }, 'daily_cap'],
      [{ expires_at: inSeconds(-5) }, 'expires_at'],
      [{ expires_at: 'tomorrow' }, 'expires_at'],
      [{ expires_at: 1_900_000_000 }, 'expires_at'],
      [{ expires_at: '2030-02-30T00:00:00Z' }, 'expires_at'],
      [{ expires_at: undefined }, 'expires_at'],
      [{ destination_address: 'nowhere' }, 'destination_address'],
      [{ destination_address: omnibus.address }, 'destination_address'],
      [{ destination_address: deposit.address }, 'destination_address'],
      [{ address_tag: '7' }, 'address_tag'],
      [{ memo: 'x' }, 'memo'],
      [{ destination_adress: 'x' }, 'destination_adress'],
    ]
    for (const [change, field] of cases) {
      const { status, body, text } = await make(shop, { ...good, ...change })
      assert.equal(status, 400, text)
      assert.equal(body.field, field, text)
    }
    const xrp = await make(shop, {
      asset: 'XRP',
      min_amount: 5,
      daily_cap: 10,
      destination_address: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
      address_tag: 'not a number',
    })
    assert.deepEqual([xrp.status, xrp.body.field], [400, 'address_tag'], xrp.text)
    assert.equal((await make(await platform.user('shop', { role: 'read-only' }), good)).status, 403)
    assert.equal((await call(null, 'POST', PATH, good, { base: platform.base })).status, 401)
    assert.equal((await call<Page<Rule>>(shop, 'GET', PATH)).body.total, '0')
  })
  test('an asset has one rule, which only its own sub-account can read, pause, resume and delete', async () => {
    const { omnibus: theirs } = await wallet(customer, 'ETH')
    const body = { asset: 'ETH', min_amount: 1, daily_cap: 2, ...rest(theirs) }
    const made = await make(shop, body)
    assert.equal(made.status, 200, made.text)
    const { id } = made.body
    assert.deepEqual(
      [
        made.body.status,
        made.body.min_amount,
        made.body.daily_cap,
        made.body.waiting,
        made.body.destination_address,
      ],
      ['active', '1', '2', '0', theirs.address],
    )
    const second = await make(shop, body)
    assert.deepEqual(
      [second.status, second.body.code, (second.body as unknown as { id: string }).id],
      [400, 'RULE_EXISTS', id],
      second.text,
    )
    assert.deepEqual(
      (await call<Page<Rule>>(shop, 'GET', `${PATH}?asset=ETH&status=active`)).body.data.map(
        (each) => each.id,
      ),
      [id],
    )
    assert.equal((await call(shop, 'GET', `${PATH}?status=nonsense`)).status, 400)
    assert.equal((await call(customer, 'GET', `${PATH}/${id}`)).status, 403)
    const neighbour = await newUser('neighbour')
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['DELETE', ''],
      ['GET', '/history'],
    ] as const) {
      assert.equal(
        (await call(neighbour, method, `${PATH}/${id}${path}`, method === 'GET' ? undefined : {}))
          .status,
        404,
        `${method} ${path}`,
      )
    }
    assert.equal((await call(shop, 'GET', `${PATH}/none`)).status, 404)
    assert.equal((await call<Rule>(shop, 'POST', `${PATH}/${id}/pause`, {})).body.status, 'paused')
    assert.equal((await call<Rule>(shop, 'POST', `${PATH}/${id}/pause`, {})).body.status, 'paused')
    assert.equal((await call<Rule>(shop, 'POST', `${PATH}/${id}/resume`, {})).body.status, 'active')
    const deleted = await call<Rule>(shop, 'DELETE', `${PATH}/${id}`, {})
    assert.deepEqual([deleted.status, deleted.body.status], [200, 'deleted'], deleted.text)
    assert.equal((await call<Rule>(shop, 'DELETE', `${PATH}/${id}`, {})).body.status, 'deleted')
    assert.equal(
      (await call<Rule>(shop, 'POST', `${PATH}/${id}/resume`, {})).body.code,
      'RULE_FINAL',
    )
    assert.equal((await call<Page<Rule>>(shop, 'GET', PATH)).body.total, '0')
    assert.deepEqual(
      (await call<Page<Rule>>(shop, 'GET', `${PATH}?status=deleted`)).body.data.map(
        (each) => each.id,
      ),
      [id],
    )
  })
})

describe('deposits are forwarded by their rules', () => {
  test('ETH and USDT_ETH: forwards exactly the received amounts, and adds up small ones', async () => {
    const user = await newUser('ether')
    for (const [asset, min] of [
      ['ETH', '2'],
      ['USDT_ETH', '50'],
    ] as const) {
      const { omnibus, deposit } = await wallet(user, asset)
      const { omnibus: theirs } = await wallet(customer, asset)
      // Funds that arrived before the rule was created are not forwarded.
      await credited(user, (await fund(asset, omnibus, '7'))['hash'])
      const before = (await balance(customer, asset)).balance
      const { body: rule, text } = await make(user, {
        asset,
        min_amount: Number(min),
        daily_cap: 1000,
        ...rest(theirs),
      })
      assert.equal(rule.status, 'active', text)
      const part = String(Number(min) * 0.6)
      await credited(user, (await fund(asset, deposit, part))['hash'])
      await waits(user, rule.id, part)
      await waitFor('reason', async () =>
        /are waiting; the smallest forward is/.test(String((await read(user, rule.id)).reason)),
      )
      await credited(user, (await fund(asset, deposit, part))['hash'])
      const [done] = await forwarded(user, rule.id, 1)
      const sum = String(Number(part) * 2)
      assert.deepEqual(
        [done?.amount, done?.status, done?.['destination_id'], done?.['memo'], done?.['type']],
        [sum, 'confirmed', theirs.address, `auto-forwarding ${rule.id}`, 'Withdraw'],
      )
      // The ether may have been paid to a further address of the receiver, whose sweep pays its own
      // fee.
      const off = asset === 'ETH' ? 0.001 : 1e-9
      await waitFor(
        'arrival',
        async () =>
          Math.abs(
            Number((await balance(customer, asset)).balance) - Number(before) - Number(sum),
          ) < off,
      )
      // If the wallet holds enough, the forward does not wait for the sweep. The sweep later
      // returns the amount, for ether less its own fee.
      const least = asset === 'ETH' ? 6.999 : 7
      await waitFor(
        'the sweep is through',
        async () => Number((await balance(user, asset)).balance) >= least,
      )
      assert.equal((await read(user, rule.id)).waiting, '0')
      assert.equal((await history(user, rule.id)).total, '1')
      assert.equal(
        (await call<{ code: string }>(user, 'POST', `/dac/v1/transaction/${done?.id}/cancel`, {}))
          .body.code,
        'TRANSACTION_FINAL',
      )
    }
  })
  for (const { asset, amount, min, kept: retained } of [
    { asset: 'BTC', amount: '0.5', min: '0.1', kept: '0' },
    { asset: 'XRP', amount: '40', min: '10', kept: '1' },
    { asset: 'XLM', amount: '40', min: '10', kept: '1' },
    { asset: 'SOL', amount: '3', min: '1', kept: '0.00089088' },
    { asset: 'ADA', amount: '50', min: '10', kept: '0' },
    { asset: 'TRX', amount: '70', min: '10', kept: '0' },
  ]) {
    test(`${asset}: ${traits(asset)}`, async () => {
      const user = await newUser(`family-${asset}`)
      const { omnibus, deposit } = await wallet(user, asset)
      const { deposit: theirs } = await wallet(customer, asset)
      const { body: rule, text } = await make(user, {
        asset,
        min_amount: Number(min),
        daily_cap: 1000,
        ...rest(theirs),
      })
      assert.equal(rule.status, 'active', text)
      assert.equal(rule.address_tag, theirs.address_tag)
      await fund(asset, omnibus, amount)
      const [first] = await forwarded(user, rule.id, 1)
      const left = () =>
        balance(user, asset).then(({ balance: free, omnibus_balance: held }) => ({
          free: Number(free),
          held: Number(held),
        }))
      const sent = Number(first?.amount) + (asset === 'TRX' ? 0 : Number(first?.fee))
      assert.ok(Math.abs(sent - (Number(amount) - Number(retained))) < 1e-9, JSON.stringify(first))
      await waitFor('settled', async () => (await left()).held === Number(retained))
      // The same amount arrives again, this time at a deposit address or with a tag.
      await fund(asset, deposit, amount)
      const all = await forwarded(user, rule.id, 2)
      assert.equal(all.length, 2)
      assert.deepEqual(
        all.map((each) => each['address_tag']),
        [theirs.address_tag, theirs.address_tag],
      )
      await waitFor(
        'arrival',
        async () =>
          (
            await call<Page<Transfer>>(
              customer,
              'GET',
              `/dac/v1/transactions?type=Deposit&asset=${asset}`,
            )
          ).body.data.filter(({ status }) => status === 'confirmed').length === 2,
      )
    })
  }
  test('forwards at most the daily cap, and keeps the rest in the wallet', async () => {
    const user = await newUser('capped')
    const { omnibus } = await wallet(user, 'ETH')
    const { omnibus: theirs } = await wallet(customer, 'ETH')
    const { body: rule } = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 3,
      ...rest(theirs),
    })
    await fund('ETH', omnibus, '5')
    await forwarded(user, rule.id, 1)
    const capped = await waitFor('cap', async () => {
      const now = await read(user, rule.id)
      return now.reason === null ? null : now
    })
    // The estimated network fee counts against the cap, because the signer nodes count the actual
    // fee too.
    const [only, ...more] = (await history(user, rule.id)).data.map((each) => Number(each.amount))
    assert.deepEqual([more, only! > 2.99, only! < 3], [[], true, true])
    assert.ok(Math.abs(Number(capped.waiting) - (5 - only!)) < 1e-12)
    assert.match(String(capped.reason), /daily cap allows 0(\.0000\d+)? ETH more/)
    assert.equal((await balance(user, 'ETH')).balance, capped.waiting)
  })
  test('forwards nothing after the rule expired, while it is paused, or after its deletion', async () => {
    const user = await newUser('ends')
    const { omnibus } = await wallet(user, 'ETH')
    const { omnibus: theirs } = await wallet(customer, 'ETH')
    const short = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 30,
      ...rest(theirs),
      expires_at: inSeconds(3),
    })
    await waitFor('its end', async () => (await read(user, short.body.id)).status === 'expired')
    await credited(user, (await fund('ETH', omnibus, '2'))['hash'])
    const { body: rule, status } = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 30,
      ...rest(theirs),
    })
    assert.equal(status, 200)
    assert.equal(
      (await call<Rule>(user, 'POST', `${PATH}/${rule.id}/pause`, {})).body.status,
      'paused',
    )
    await credited(user, (await fund('ETH', omnibus, '3'))['hash'])
    assert.equal((await waits(user, rule.id, '3')).status, 'paused')
    await lookedAtAll()
    assert.equal((await history(user, rule.id)).total, '0')
    await call(user, 'POST', `${PATH}/${rule.id}/resume`, {})
    assert.deepEqual(
      (await forwarded(user, rule.id, 1)).map((each) => each.amount),
      ['3'],
    )
    assert.equal(
      (await call<Rule>(user, 'DELETE', `${PATH}/${rule.id}`, {})).body.status,
      'deleted',
    )
    await credited(user, (await fund('ETH', omnibus, '4'))['hash'])
    await lookedAtAll()
    assert.equal((await history(user, rule.id)).total, '1')
    assert.equal((await history(user, short.body.id)).total, '0')
    assert.equal((await balance(user, 'ETH')).balance, '6')
    // The key that created a rule is revoked: the rule loses its authority and no forward is
    // attempted.
    const [maker, reader] = [await newUser('ends'), user]
    const last = await make(maker, { asset: 'ETH', min_amount: 1, daily_cap: 30, ...rest(theirs) })
    assert.equal(last.status, 200, last.text)
    assert.equal((await platform.cli('api-user', 'revoke', '--api-key', maker.apiKey)).status, 0)
    await fund('ETH', omnibus, '1')
    await waitFor('refusal', async () =>
      /was revoked/.test(String((await read(reader, last.body.id)).reason)),
    )
    assert.equal((await history(reader, last.body.id)).total, '0')
    assert.equal(
      (await call<Rule>(reader, 'DELETE', `${PATH}/${last.body.id}`, {})).body.status,
      'deleted',
    )
  })
  test('holds a forward to a flagged address until unfrozen; cancellation returns its amount', async () => {
    const user = await newUser('screened')
    const { omnibus } = await wallet(user, 'ETH')
    const bad = { address: '0x00000000000000000000000000000000000000F5', address_tag: null }
    await call(user, 'POST', '/dac/v1/aml', {
      provider: 'CHAINALYSIS',
      aml_token: 'sandbox',
      aml_risk_levels: 'SEVERE, HIGH',
      aml_deposit: false,
      aml_withdrawal: true,
    })
    await platform.operator('devnet', { command: 'risk', address: bad.address, level: 'SEVERE' })
    const { body: rule } = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 30,
      ...rest(bad),
    })
    await fund('ETH', omnibus, '2')
    const held = await waitFor('hold', async () =>
      (await history(user, rule.id)).data.find((each) => each.sub_status === 'AML_HELD'),
    )
    assert.equal((await balance(user, 'ETH')).balance, '0')
    await fund('ETH', omnibus, '3')
    await waitFor('wait', async () =>
      /screening holds an earlier forward/.test(String((await read(user, rule.id)).reason)),
    )
    assert.equal(
      (await call(user, 'POST', `/dac/v1/transaction/${held.id}/cancel`, {})).status,
      200,
    )
    assert.equal((await terminal(user, held.id)).sub_status, 'CANCELLED')
    const next = await waitFor('second hold', async () =>
      (await history(user, rule.id)).data.find((each) => each.sub_status === 'AML_HELD'),
    )
    assert.equal(next.amount, '3')
    await platform.operator('devnet', { command: 'risk', address: bad.address, level: 'none' })
    await call(user, 'POST', '/dac/v1/unfreeze-address', { asset: 'ETH', address: bad.address })
    await assertConfirmed(user, next.id)
    assert.equal((await balance(user, 'ETH')).balance, '2')
    assert.equal(
      BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [bad.address, 'latest'])),
      3n * 10n ** 18n,
    )
  })
  test('deleting a rule cancels its signed pending forward on the chain', async () => {
    const user = await newUser('outlived')
    const { omnibus } = await wallet(user, 'BTC')
    const to = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
    const { body: rule } = await make(user, {
      asset: 'BTC',
      min_amount: 0.1,
      daily_cap: 30,
      ...rest({ address: to, address_tag: null }),
    })
    await platform.operator('devnet', { command: 'fault', network: 'BTC', mode: 'reject' })
    try {
      await fund('BTC', omnibus, '2')
      const signed = await waitFor('a signed forward', async () =>
        (await history(user, rule.id)).data.find(
          ({ hash, sub_status: state }) => hash !== null && state === 'BROADCASTING',
        ),
      )
      const deleted = (
        await call<Rule & { outstanding: string[] }>(user, 'DELETE', `${PATH}/${rule.id}`, {})
      ).body
      assert.deepEqual([deleted.status, deleted.outstanding], ['deleted', [signed.hash]])
      await waitFor('its replacement is signed', async () =>
        (await history(user, rule.id)).data.find(
          ({ hash }) => hash !== null && hash !== signed.hash,
        ),
      )
      await platform.operator('devnet', { command: 'fault', network: 'BTC', mode: 'heal' })
      const ended = await terminal(user, signed.id)
      assert.deepEqual([ended.status, ended.sub_status], ['failed', 'CANCELLED'])
      await assert.rejects(rpc(platform, 'BTC', 'getrawtransaction', [signed.hash, true]))
      assert.equal(Number((await balance(user, 'BTC')).balance), 2 - Number(ended.fee))
      await waitFor('nothing is outstanding', async () =>
        (await call<{ outstanding: string[] }>(user, 'GET', `${PATH}/${rule.id}`)).body.outstanding
          .length === 0
          ? true
          : null,
      )
    } finally {
      await platform.operator('devnet', { command: 'fault', network: 'BTC', mode: 'heal' })
    }
    await audited()
  })
  test('refuses a deletion without a body, because its signature would also match a GET', async () => {
    const user = await newUser('bodiless')
    await wallet(user, 'ETH')
    const { body: rule } = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 30,
      ...rest({ address: '0x00000000000000000000000000000000000000F8', address_tag: null }),
    })
    const { status, body } = await call<Rule>(user, 'DELETE', `${PATH}/${rule.id}`)
    assert.deepEqual([status, body.field], [400, 'body'])
    assert.equal((await read(user, rule.id)).status, 'active')
  })
  test('a failed forward releases its amount, and is retried until one succeeds', async () => {
    const user = await platform.user('failing')
    const { omnibus } = await wallet(user, 'POL')
    const { omnibus: theirs } = await wallet(customer, 'POL')
    const { body: rule } = await make(user, {
      asset: 'POL',
      min_amount: 1,
      daily_cap: 3,
      ...rest(theirs),
    })
    assert.equal(
      (
        await platform.cli(
          'gas-tank',
          'set',
          '--workspace',
          'failing',
          '--network',
          'POL',
          '--fee-cap',
          '0.000000001',
        )
      ).status,
      0,
    )
    await fund('POL', omnibus, '2')
    const failed = await waitFor('failure', async () =>
      (await history(user, rule.id)).data.find(({ status }) => status === 'failed'),
    )
    const shown = await waits(user, rule.id, '2')
    assert.match(String(shown.reason), /the last forward failed: a network fee/)
    assert.equal((await balance(user, 'POL')).balance, '2')
    assert.equal(
      (
        await platform.cli(
          'gas-tank',
          'set',
          '--workspace',
          'failing',
          '--network',
          'POL',
          '--fee-cap',
          'none',
        )
      ).status,
      0,
    )
    const [done] = await forwarded(user, rule.id, 1)
    assert.deepEqual(
      [done?.amount, (await read(user, rule.id)).waiting, (await terminal(user, failed.id)).status],
      ['2', '0', 'failed'],
    )
  })
  test('after these forwards, the ledger agrees with the chains', audited)
})

function traits(asset: string): string {
  return asset === 'TRX'
    ? 'the gas tank pays the fee of a forward'
    : 'deducts the fee from the forwarded amount'
}

test('a deposit address keeps its coins until their value justifies the cost of a sweep', async () => {
  const user = await newUser('dust')
  const { deposit } = await wallet(user, 'ETH')
  const { deposit: tokens } = await wallet(user, 'USDT_ETH')
  assert.equal((await platform.cli('sweep', 'set', '--cost-multiple', 'x')).status, 1)
  assert.match(
    (await platform.cli('sweep', 'set', '--network', 'NOPE', '--cost-multiple', '2')).stderr,
    /network NOPE does not exist/,
  )
  const set = await platform.cli(
    'sweep',
    'set',
    '--network',
    'ETH',
    '--cost-multiple',
    '1000',
    '--json',
  )
  assert.equal(set.status, 0, set.stderr)
  assert.equal(
    (
      await platform.cli(
        'sweep',
        'set',
        '--asset',
        'USDT_ETH',
        '--cost-multiple',
        '0',
        '--min-amount',
        '20',
      )
    ).status,
    0,
  )
  await credited(user, (await fund('ETH', deposit, '0.001'))['hash'])
  await credited(user, (await fund('USDT_ETH', tokens, '15'))['hash'])
  const waiting = await waitFor('two waiting sweeps', async () => {
    const { waiting: rows } = (await platform.operator('sweep show')) as {
      waiting: { address: string; amount: string; reason: string }[]
    }
    const mine = rows.filter(
      ({ address }) => address === deposit.address || address === tokens.address,
    )
    return mine.length === 2 ? mine : null
  })
  assert.match(
    waiting.find(({ address }) => address === deposit.address)?.reason ?? '',
    /worth less than 1000 times the network fee/,
  )
  assert.match(
    waiting.find(({ address }) => address === tokens.address)?.reason ?? '',
    /15 USDT_ETH are less than the minimum sweep of 20/,
  )
  assert.deepEqual(
    await balance(user, 'ETH').then(({ balance: free, omnibus_balance: held }) => [free, held]),
    ['0', '0.001'],
  )
  await audited()
  await credited(user, (await fund('USDT_ETH', tokens, '5'))['hash'])
  await waitFor('swept tokens', async () => (await balance(user, 'USDT_ETH')).balance === '20')
  await credited(user, (await fund('ETH', deposit, '40'))['hash'])
  await waitFor('swept ether', async () => Number((await balance(user, 'ETH')).balance) > 40)
  for (const address of [deposit.address, tokens.address]) {
    const sweeps = (
      await call<Page<Transfer>>(
        user,
        'GET',
        `/dac/v1/transactions?type=Sweep&source_id=${address}`,
      )
    ).body
    // A queued sweep of ether is ignored: the rest of an earlier sweep's fee waits until more
    // arrives.
    const states = sweeps.data
      .map(({ sub_status: state }) => state)
      .filter((state) => address === tokens.address || state !== 'QUEUED')
    assert.deepEqual(states, ['CONFIRMED'], 'one sweep for both deposits')
  }
  for (const args of [
    ['--network', 'ETH', '--cost-multiple', 'none'],
    ['--asset', 'USDT_ETH', '--cost-multiple', 'none', '--min-amount', 'none'],
  ])
    assert.equal((await platform.cli('sweep', 'set', ...args)).status, 0)
  await audited()
})

test('forwards each deposit once if the process is killed at any commit of a forward', async () => {
  const user = await newUser('killed')
  const { omnibus } = await wallet(user, 'ETH')
  const to = { address: '0x00000000000000000000000000000000000000F6', address_tag: null }
  const { body: rule } = await make(user, {
    asset: 'ETH',
    min_amount: 1,
    daily_cap: 100,
    ...rest(to),
  })
  let count = 0
  for (const checkpoint of [
    'deposit.credited',
    'forward.created',
    'transaction.fuel-reserved',
    'transaction.signed',
    'transaction.broadcast',
    'transaction.settled',
  ]) {
    await platform.dieAt(checkpoint, () => fund('ETH', omnibus, '1'))
    count++
    user.base = platform.base
    await forwarded(user, rule.id, count)
  }
  await lookedAtAll()
  const { data } = await history(user, rule.id)
  assert.equal(data.length, count)
  // A rule is not kept if its creation was never answered.
  const other = await newUser('halfway')
  await wallet(other, 'ETH')
  await platform.dieAt('rule.pending', () =>
    make(other, { asset: 'ETH', min_amount: 1, daily_cap: 2, ...rest(to) }),
  )
  user.base = other.base = platform.base
  assert.equal((await call<Page<Rule>>(other, 'GET', PATH)).body.data[0]?.status, 'pending')
  // Changes the time in the database, so that the test does not wait a minute.
  const database = openDatabase(
    (
      JSON.parse(readFileSync(join(platform.home, 'runtime.json'), 'utf8')) as {
        database_url: string
      }
    ).database_url,
  )
  await database.query(
    `update forward_rules set created_at = created_at - interval '1 minute'
        where state = 'PENDING'`,
  )
  await database.close()
  await waitFor(
    'its end',
    async () => (await call<Page<Rule>>(other, 'GET', `${PATH}?status=deleted`)).body.total === '1',
  )
  assert.equal(
    (await make(other, { asset: 'ETH', min_amount: 1, daily_cap: 2, ...rest(to) })).status,
    200,
  )
  assert.equal(
    BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [to.address, 'latest'])),
    BigInt(count) * 10n ** 18n,
  )
  shop.base = customer.base = platform.base
  await audited()
})

test('with fewer than two nodes no rule is created, and a deletion waits for the second node', async () => {
  const user = await newUser('lonely')
  const { omnibus } = await wallet(user, 'ETH')
  const { omnibus: theirs } = await wallet({ ...customer, base: platform.base }, 'ETH')
  const { body: rule } = await make(user, {
    asset: 'ETH',
    min_amount: 1,
    daily_cap: 30,
    ...rest(theirs),
  })
  await platform.nodesDown([2, 3], async () => {
    const ending = await call<Rule>(user, 'DELETE', `${PATH}/${rule.id}`, {})
    assert.deepEqual([ending.status, ending.body.status], [200, 'deleting'], ending.text)
    const refused = await make(user, {
      asset: 'ETH',
      min_amount: 1,
      daily_cap: 30,
      ...rest(theirs),
    })
    assert.deepEqual(
      [refused.status, refused.body.code],
      [503, 'SIGNERS_UNAVAILABLE'],
      refused.text,
    )
  })
  await waitFor('deletion', async () => (await read(user, rule.id)).status === 'deleted')
  await credited(user, (await fund('ETH', omnibus, '2'))['hash'])
  const again = await make(user, { asset: 'ETH', min_amount: 1, daily_cap: 30, ...rest(theirs) })
  assert.equal(again.status, 200, again.text)
  await fund('ETH', omnibus, '1')
  assert.deepEqual(
    (await forwarded(user, again.body.id, 1)).map((each) => each.amount),
    ['1'],
  )
})

testEmittedEvents(
  () => platform.database,
  [
    'auto_forwarding.created',
    'auto_forwarding.deleted',
    'transaction.created',
    'transaction.confirmed',
  ],
)

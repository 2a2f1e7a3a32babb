import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { formatAmount } from '@custody/chains'
import { verifyWebhook } from '@custody/client'
import { exportLog, verify as verifyLogs } from '../src/server/operator/cli/console.ts'
import { callPlatform } from '../src/server/operator/connect.ts'
import { listen } from '../src/server/operator/events/listen.ts'
import { takeLink } from '../testing/console-fixture.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import {
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of the command line, the fees, the control panel and the webhooks of a whole platform, and
 * of `npx custody listen`.
 */
const platform = new TestPlatform()
let user: User
let reader: User
const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const got: { headers: IncomingHttpHeaders; body: string; path: string; at: number }[] = []
let status = 200
const server = createServer((request, response) => {
  let body = ''
  request
    .setEncoding('utf8')
    .on('data', (chunk: string) => {
      body += chunk
    })
    .on('end', () => {
      got.push({ headers: request.headers, body, path: request.url ?? '', at: performance.now() })
      response.writeHead(status).end()
    })
})
let url = ''

before(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await platform.start({ CUSTODY_LOG_LEVEL: 'info' })
  user = await platform.user('api')
  reader = await platform.user('api', { role: 'read-only' })
  await fundedWallet(platform, user, 'BTC', '1')
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await platform.remove()
})

const problem = async (
  method: string,
  path: string,
  body?: unknown,
  options?: Parameters<typeof call>[4],
  as: User | null = user,
) => call<{ field?: string }>(as, method, path, body, { base: platform.base, ...options })

test('the CLI prints JSON on its last line and errors on stderr, and enrolment can be repeated', async () => {
  const created = await platform.cli(
    'api-user',
    'create',
    '--workspace',
    'operated',
    '--sub-account',
    'main',
    '--role',
    'read-only',
    '--public-key',
    platform.writePublicKey(),
    '--json',
  )
  assert.equal(created.status, 0, created.stderr)
  const { api_key: apiKey } = JSON.parse(created.stdout.trim().split('\n').at(-1) as string) as {
    api_key: string
  }
  const again = await platform.cli('api-user', 'enrol', '--api-key', apiKey, '--json')
  assert.deepEqual([again.status, JSON.parse(again.stdout).enrolled], [0, true], again.stderr)
  const wallet = await platform.cli(
    'wallet',
    'set',
    '--workspace',
    'api',
    '--sub-account',
    'main',
    '--asset',
    'BTC',
    '--status',
    'inactive',
    '--reason',
    'a look',
    '--json',
  )
  assert.deepEqual(
    [wallet.status, JSON.parse(wallet.stdout).status],
    [0, 'inactive'],
    wallet.stderr,
  )
  assert.match(
    (
      await platform.cli(
        'wallet',
        'set',
        '--id',
        JSON.parse(wallet.stdout).id,
        '--status',
        'active',
      )
    ).stdout,
    /api \/ main {2}BTC {2}active\n/,
  )
  assert.match(
    (await platform.cli('wallet', 'list', '--workspace', 'api')).stdout,
    /api \/ main {2}BTC {2}active\n/,
  )
  for (const [words, said] of [
    [['api-user', 'create', '--workspace', 'x'], '--public-key'],
    [['api-user', 'revoke', '--api-key', 'none'], '--api-key: must be a UUID'],
    [['api-user', 'revoke', '--api-key', randomUUID()], '--api-key: API user'],
    [['gas-tank', 'list', '--workspace', 'none'], '--workspace: workspace none does not exist'],
    [['gas-tank', 'address', '--workspace', 'operated', '--network', 'BTC'], '--network'],
    [['devnet', 'fund', 'BTC', 'nowhere', '1'], 'address'],
    [['devnet', 'mine', 'BTC', 'x'], 'blocks'],
    [['nonsense'], 'unknown command'],
    [
      ['wallet', 'set', '--status', 'inactive'],
      'either --id, or --workspace, --sub-account and --asset are required',
    ],
    [['wallet', 'set', '--id', randomUUID()], '--status'],
    [['wallet', 'set', '--id', randomUUID(), '--status', 'active'], 'does not exist'],
    [['request', 'GET', 'x'], 'Usage: custody request'],
    [['signer', 'refresh', '--workspace', 'none'], 'no key of workspace none'],
    [['keygen', '--out', platform.writePublicKey()], 'already exists'],
  ] as const) {
    const refused = await platform.cli(...words, '--json')
    assert.equal(refused.status, 1, words.join(' '))
    assert.equal(refused.stdout, '', words.join(' '))
    assert.match(refused.stderr, new RegExp(said), words.join(' '))
  }
})

test('revoked keys are refused', async () => {
  const gone = await platform.user('gone')
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, {}, gone)).status, 200)
  assert.equal(
    (await platform.cli('api-user', 'revoke', '--api-key', gone.apiKey, '--json')).status,
    0,
  )
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, {}, gone)).status, 401)
})

test('returns fee rates and fee estimates', async () => {
  const rates = await call<{
    low: string
    medium: string
    high: string
    fee_rate_unit: string
    updated_at: string
  }>(reader, 'GET', '/dac/v1/network-fee-rates/BTC')
  assert.equal(rates.status, 200, rates.text)
  assert.equal(rates.body.fee_rate_unit, 'Sat/Byte')
  assert.ok(Number(rates.body.low) <= Number(rates.body.high))
  assert.ok(Math.abs(Date.now() - new Date(rates.body.updated_at).getTime()) < 30_000)
  const estimate = (body: Record<string, unknown>, as = user) =>
    call<{ fee: string; basis: string; fee_rate: string; fee_rate_unit: string }>(
      as,
      'POST',
      '/dac/v1/estimate-fee',
      body,
    )
  const own = await estimate({ asset: 'BTC', fee_rate: 5, amount: 0.1 })
  assert.deepEqual(
    [own.status, own.body.fee, own.body.basis, own.body.fee_rate_unit],
    [200, '0.00000705', 'wallet', 'Sat/Byte'],
    own.text,
  )
  for (const body of [
    { asset: 'BTC', fee_rate: 5 },
    { asset: 'BTC', fee_rate: 5, amount: 1000 },
    { asset: 'BTC', fee_rate: 5, amount: 0.00000001 },
  ]) {
    const typical = await estimate(body)
    assert.deepEqual(
      [typical.status, typical.body.basis, typical.body.fee],
      [200, 'typical', '0.00000705'],
      typical.text,
    )
  }
  const eth = await estimate({ asset: 'ETH', fee_rate: 2.5 }, reader)
  assert.deepEqual(
    [eth.body.fee, eth.body.fee_rate, eth.body.fee_rate_unit],
    ['0.0000525', '2.5', 'GWei'],
  )
  assert.equal((await estimate({ asset: 'USDT_ETH', fee_rate: 1 })).body.fee, '0.000065')
  const xrp = await estimate({ asset: 'XRP', fee_rate: 12, amount: 3 })
  assert.deepEqual([xrp.body.fee, xrp.body.fee_rate_unit], ['0.000012', 'Drop'], xrp.text)
  for (const ticker of ['XRP', 'XLM', 'ONE', 'DOGE'])
    assert.equal(
      (await call(reader, 'GET', `/dac/v1/network-fee-rates/${ticker}`)).status,
      200,
      ticker,
    )
  for (const [field, body] of [
    ['fee_rate', { asset: 'BTC' }],
    ['fee_rate', { asset: 'BTC', fee_rate: -1 }],
    ['fee_rate', { asset: 'BTC', fee_rate: 0 }],
    ['fee_rate', { asset: 'BTC', fee_rate: 1.0001 }],
    ['amount', { asset: 'BTC', fee_rate: 1, amount: 0 }],
    ['asset', { asset: 'XYZ', fee_rate: 1 }],
  ] as const) {
    const answer = await problem('POST', '/dac/v1/estimate-fee', body)
    assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text)
  }
  assert.equal((await problem('GET', '/dac/v1/network-fee-rates/XYZ')).status, 400)
})

test("a member who joined by an operator's link sees a transfer’s whole timeline in the panel", async () => {
  const { link } = (await platform.operator('console invite', {
    workspace: 'api',
    role: 'viewer',
  })) as { link: string }
  assert.match(link, /^http:\/\/localhost:\d+\/console\/join#/)
  const { browser } = await takeLink(platform, link.split('#').at(-1) as string)
  const made = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.01', BTC_TO, { memo: 'told' }),
  )
  assert.equal(made.status, 200, made.text)
  await waitFor(
    'its end',
    async () =>
      (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${made.body.id}`)).body.status ===
      'confirmed',
  )
  const story = await browser.ask<{
    transaction: Transfer
    states: { state: string; at: string }[]
    request: { api_key: string; uri: string; claims: { nonce: string } }
    receipts: number[]
    signed_by: { attempt: number; purpose: string; nodes: number[] }[]
    attempts: { hash: string; state: string; fee: number }[]
    fee: { planned: number; paid: number; asset: string }
    confirmations: { now: number; needed: number }
    ledger: { entry: string; account: string; amount: number }[]
    events: { type: string }[]
  }>('GET', `/workspaces/api/sub-accounts/main/transactions/${made.body.id}/story`)
  assert.equal(story.status, 200, story.text)
  const timeline = story.body
  const states = timeline.states.map(({ state }) => state)
  assert.deepEqual(
    states.filter((state, at) => states.indexOf(state) === at),
    ['CREATED', 'QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED'],
  )
  assert.deepEqual(
    timeline.states.map(({ at }) => at),
    timeline.states.map(({ at }) => at).toSorted(),
  )
  assert.deepEqual(
    [timeline.request.api_key, timeline.request.uri],
    [user.apiKey, '/dac/v1/transaction'],
  )
  assert.ok(!story.text.includes('"token"'), 'the signed request itself is not handed out')
  assert.equal(timeline.signed_by.length, 1)
  const [by] = timeline.signed_by
  assert.ok(
    by?.nodes.length === 2 &&
      new Set(by.nodes).size === 2 &&
      by.nodes.every((node) => [1, 2, 3].includes(node)),
    JSON.stringify(by),
  )
  assert.equal(timeline.attempts.at(-1)?.hash, timeline.transaction.hash)
  assert.equal(timeline.fee.paid, timeline.transaction.fee)
  assert.ok(timeline.fee.planned >= timeline.fee.paid && timeline.fee.asset === 'BTC')
  assert.ok(timeline.confirmations.now >= timeline.confirmations.needed)
  assert.deepEqual(
    [...new Set(timeline.ledger.map(({ entry }) => entry))],
    ['reserve', 'prepaid-reserve', 'prepaid-charge', 'settle'],
  )
  assert.ok(
    Math.abs(timeline.ledger.reduce((sum, { amount }) => sum + amount, 0)) < 1e-9,
    'entries sum to zero',
  )
  for (const type of ['transaction.created', 'transaction.confirmed'])
    assert.ok(
      timeline.events.some((event) => event.type === type),
      type,
    )
  const health = await browser.ask<{
    nodes: { ready: boolean; height: number }[]
    chains: { network: string; ok: boolean; height: number | null }[]
  }>('GET', '/workspaces/api/health')
  assert.ok(
    health.body.nodes.length === 3 &&
      health.body.nodes.every(({ ready, height }) => ready && height > 0),
    health.text,
  )
  assert.ok(
    health.body.chains.some(
      ({ network, ok, height }) => network === 'BTC' && ok && height !== null,
    ),
  )
  // The audit log is exported and verified at the operator's terminal. The verification detects one
  // changed byte.
  const out = join(platform.home, 'audit.ndjson')
  const exported = await exportLog({
    home: platform.home,
    words: [],
    values: { workspace: 'api', out },
  })
  const verify = (head?: string) =>
    verifyLogs({ home: platform.home, words: [out], values: { head } })
  const { result } = await verify(String(exported.result['hash']))
  assert.ok(
    Number(result['lines']) >= 4 && result['hash'] === exported.result['hash'],
    JSON.stringify(result),
  )
  await assert.rejects(async () => verify('0'.repeat(63) + '1'), /no line has the noted hash/)
  // Without a file, the logs in the database are verified, also against an earlier result.
  const earlier = join(platform.home, 'heads.json')
  const stored = (heads?: string) =>
    verifyLogs({ home: platform.home, words: [], values: { heads } })
  const first = await stored()
  assert.deepEqual([first.exitCode, first.result['broken']], [0, []])
  writeFileSync(earlier, `${JSON.stringify(first.result)}\n`)
  assert.equal((await stored(earlier)).exitCode, 0)
  const heads = first.result['heads'] as { name: string; seq: number }[]
  writeFileSync(
    earlier,
    JSON.stringify({ heads: heads.map((each) => ({ ...each, seq: each.seq + 1 })) }),
  )
  const shortened = await stored(earlier)
  assert.equal(shortened.exitCode, 1)
  assert.match(String(shortened.text), /^BROKEN api, entry \d+: was removed/m)
  // Each entry is also a line of the process's log. The export is verified with the hash in that
  // line.
  const lines = platform.output
    .split('\n')
    .filter(
      (line) =>
        line.includes('"msg":"audit log entry written"') && line.includes('"api_user.created"'),
    )
    .map((line) => JSON.parse(line) as { hash: string })
  assert.ok(lines.length >= 2, platform.output.slice(-1000))
  for (const { hash } of lines.slice(0, 2)) await verify(hash)
  writeFileSync(out, readFileSync(out, 'utf8').replace('viewer', 'viewed'))
  await assert.rejects(async () => verify(), /was changed/)
  await assert.rejects(
    async () => exportLog({ home: platform.home, words: [], values: { workspace: 'api', out } }),
    /already exists/,
  )
})

test('reports that it is alive and ready', async () => {
  for (const path of ['/livez', '/readyz'])
    assert.equal((await call(null, 'GET', path, undefined, { base: platform.base })).status, 200)
})

describe('webhooks', () => {
  let user: User
  before(async () => {
    user = await platform.user('hooks')
  })
  // A failed test may leave the receiver in the refusing mode.
  beforeEach(() => {
    status = 200
  })

  interface Hook {
    id: string
    secret: string
  }
  const hook = async (path: string, more: object = {}) =>
    (
      await call<Hook>(user, 'POST', '/dac/v1/webhooks', {
        url: `${url}${path}`,
        events: ['*'],
        ...more,
      })
    ).body
  const at = (path: string, type?: string) =>
    got.filter(
      (each) =>
        each.path === path &&
        (type === undefined || (JSON.parse(each.body) as { type: string }).type === type),
    )
  const arrived = (path: string, type: string) =>
    waitFor(`${type} at ${path}`, async () => at(path, type)[0])

  test('a deposit and a transfer emit every event, in the standard and the classic format', async (t) => {
    const ours = await hook('/ours')
    await hook('/classic', { format: 'classic' })
    await fundedWallet(platform, user, 'ETH', '5')
    const deposit = await arrived('/ours', 'deposit.confirmed')
    const event = verifyWebhook(deposit.headers, deposit.body, ours.secret)
    assert.equal(event.data['amount'], '5')
    const sent = performance.now()
    const to = '0x00000000000000000000000000000000000000AA'
    const made = await call<{ id: string }>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ETH', '1.25', to, { memo: 'rent', sequence_id: 'hooked-1' }),
    )
    assert.equal(made.status, 200, made.text)
    const { id } = made.body
    const created = await arrived('/ours', 'transaction.created')
    t.diagnostic(
      `transaction.created came ${Math.round(created.at - sent)} ms after it was asked for`,
    )
    await arrived('/ours', 'transaction.confirmed')
    const versions = at('/ours')
      .map(({ body }) => JSON.parse(body) as { object: string; version: number; type: string })
      .filter(({ object }) => object === id)
    assert.deepEqual(
      versions.map(({ version }) => version),
      versions.map((_, index) => index + 1),
      versions.map(({ type }) => type).join(),
    )
    assert.deepEqual(
      [versions[0]?.type, versions.at(-1)?.type],
      ['transaction.created', 'transaction.confirmed'],
    )

    const classic = await arrived('/classic', 'transaction.confirmed')
    const { data } = JSON.parse(classic.body) as { data: Record<string, unknown> }
    const { body: shown } = await call<Record<string, string>>(
      user,
      'GET',
      `/dac/v1/transaction/${id}`,
    )
    const subAccount = await platform.database.one<{ id: string }>(
      `select s.id from sub_accounts s join workspaces w on w.id = s.workspace_id
      where w.name = 'hooks'`,
    )
    const fuel = await platform.database.one<{ fee: string }>(
      `select fee::text from transactions where parent_id = $1 and kind = 'FUEL'`,
      [id],
    )
    const iso = (text: string) => `${text.slice(0, 10)} ${text.slice(11, 19)}`
    assert.deepEqual(data, {
      id,
      sub_account: { id: subAccount?.id, title: 'main' },
      type: 'Withdraw',
      asset: 'ETH',
      amount: 1.25,
      amount_in_usd: Number(shown['amount_in_usd']),
      network_fee: Number(shown['fee']),
      nett: 1.25,
      fees: {
        sweep_fee: 0,
        refill_fee: Number(formatAmount(BigInt(fuel?.fee ?? '0'), 18)),
        withdrawal_fee: Number(shown['platform_fee']),
      },
      hash: shown['hash'],
      source_type: 'INTERNAL',
      source_id: shown['source_id'],
      source_alias: 'Omnibus Wallet',
      dest_type: 'EXTERNAL',
      dest_id: to,
      dest_alias: null,
      dest_outputs: [{ address: to, address_tag: null, amount: 1.25 }],
      memo: 'rent',
      sequence_id: 'hooked-1',
      created_on_utc: iso(shown['created_at'] as string),
      created_timestamp_utc: Math.floor(Date.parse(shown['created_at'] as string) / 1000),
      status: 'confirmed',
      // This network itself reports which blocks are final.
      confirmations: { required: null, actual: Number(shown['confirmations']) },
      explorer_url: null,
      last_updated_on_utc: data['last_updated_on_utc'],
      tx_key: null,
      failure_reason: null,
      approvals: [],
      aml: { cid: null, risk_score: null },
      created_by: { name: user.apiKey, email: null },
      cancelled_by: null,
    })
    assert.match(String(data['last_updated_on_utc']), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    const updated = JSON.parse((await arrived('/classic', 'transaction.updated')).body) as {
      data: Record<string, unknown>
    }
    assert.deepEqual(Object.keys(updated.data), Object.keys(data), 'every step has every field')
    assert.equal(updated.data['status'], 'pending')
    const coming = JSON.parse((await arrived('/classic', 'deposit.detected')).body) as {
      data: Record<string, unknown>
    }
    assert.deepEqual(Object.keys(coming.data), Object.keys(data))
    assert.deepEqual(
      [coming.data['type'], coming.data['dest_alias'], coming.data['created_by']],
      ['Deposit', 'Omnibus Wallet', null],
    )
    assert.equal(
      (
        JSON.parse((await arrived('/classic', 'wallet.created')).body) as {
          data: { omnibus_address: string }
        }
      ).data.omnibus_address.length,
      42,
      'others keep their shape',
    )
  })

  test('events committed before the platform died are delivered later, even to a failed receiver', async () => {
    status = 500
    const { body: wallet } = await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', {
      asset: 'BTC',
    })
    await platform.kill()
    status = 200
    await platform.start()
    user.base = platform.base
    const before = await waitFor('the wallet', async () =>
      at('/ours', 'wallet.created').find(({ body }) => body.includes(wallet.id)),
    )
    assert.ok(before)
    await waitFor(
      'every delivery',
      async () =>
        (await platform.database.one(
          `select 1 from webhook_deliveries where status = 'pending'
          and (lease_token is not null or tries = 0)`,
        )) === undefined,
    )
  })

  test('listen prints events and forwards them signed, and prints JSON lines with --json', async (t) => {
    const lines: string[] = []
    const ending = new AbortController()
    const second = new AbortController()
    t.after(() => [ending, second].forEach((each) => each.abort()))
    const work = listen(
      platform.home,
      { forward: `${url}/forwarded`, events: 'address.*', workspace: 'hooks' },
      (line) => lines.push(line),
      ending.signal,
    )
    await waitFor('its start', async () => lines.length === 2)
    const secret = /signed with (whsec_\S+)$/.exec(lines[0] ?? '')?.[1] as string
    assert.equal(lines[1], 'listening for events; Ctrl-C stops it')
    const [first] = await Promise.all([
      call<{ id: string; address: string }>(user, 'POST', '/dac/v1/address', { asset: 'BTC' }),
      platform
        .user('another')
        .then((other) => call(other, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })),
    ])
    const forwarded = await arrived('/forwarded', 'address.created')
    assert.equal(
      verifyWebhook(forwarded.headers, forwarded.body, secret).data['address'],
      first.body.address,
    )
    assert.ok(forwarded.headers['x-signature'])
    status = 418
    await call(user, 'POST', '/dac/v1/address', { asset: 'BTC' })
    await waitFor('two lines', async () => lines.length === 4)
    status = 200
    assert.match(
      lines[2] as string,
      /^\d\d:\d\d:\d\d {2}address\.created +hooks\/main {2}[0-9a-f-]{36} v1 {2}→ 200 \(\d+ ms\)$/,
    )
    assert.match(lines[3] as string, /→ status 418 \(\d+ ms\)$/)
    ending.abort()
    assert.deepEqual(await work, { result: { events: 2 }, text: '2 events' })

    const asJson: string[] = []
    const again = listen(
      platform.home,
      { forward: `${url}/again`, json: true },
      (line) => asJson.push(line),
      second.signal,
    )
    await waitFor('its start', async () => asJson.length === 1)
    assert.deepEqual(JSON.parse(asJson[0] as string), { forwarding: `${url}/again`, secret })
    await call(user, 'POST', '/dac/v1/address', { asset: 'BTC' })
    await waitFor('a line', async () => asJson.length === 2)
    const line = JSON.parse(asJson[1] as string) as Record<string, unknown>
    assert.deepEqual(
      [
        line['type'],
        line['workspace'],
        line['sub_account'],
        (line['forwarded'] as { status: number }).status,
      ],
      ['address.created', 'hooks', 'main', 200],
    )
    const triggered = await callPlatform(platform.home, 'trigger', {
      event: 'order.created',
      workspace: 'hooks',
    })
    assert.equal(triggered['listened'], true)
    await waitFor('the test event', async () => asJson.length === 3)
    assert.equal((JSON.parse(asJson[2]!) as { test: boolean }).test, true)
    const test = await arrived('/again', 'order.created')
    assert.equal(verifyWebhook(test.headers, test.body, secret).test, true)
    assert.equal(test.headers['custody-test'], 'true')
    second.abort()
    await again
    await assert.rejects(
      listen(platform.home, { events: 'nonsense' }, () => undefined, second.signal),
      /--events: "nonsense" is no event/,
    )
    await assert.rejects(
      listen(platform.home, { workspace: 'nobody' }, () => undefined, second.signal),
      /--workspace: workspace nobody does not exist/,
    )
  })

  test('listen prints lines on standard output, and ends on Ctrl-C', async () => {
    const child = spawn(
      process.execPath,
      [
        join(platform.package, 'src', 'server', 'operator', 'cli.ts'),
        'listen',
        '--json',
        '--events',
        'address.created',
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, CUSTODY_HOME: platform.home },
      },
    )
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    const ended = new Promise((resolve) => {
      child.once('close', resolve)
    })
    // Events that were emitted before the command listens are not printed.
    await waitFor('a line', async () => {
      await call(user, 'POST', '/dac/v1/address', { asset: 'BTC' })
      return text.includes('\n')
    })
    child.kill('SIGINT')
    assert.equal(await ended, 0)
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(lines.at(-1), { events: lines.length - 1 })
    assert.ok(lines.slice(0, -1).every(({ type }) => type === 'address.created'))
  })
})

testEmittedEvents(
  () => platform.database,
  ['transaction.updated', 'wallet.created', 'address.created'],
)

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { formatAmount } from '@custody/chains'
import { verifyWebhook } from '@custody/client'
import { listen } from '../src/server/operator/listen.ts'
import {
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  waitFor,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'

/**
 * Tests of the webhooks of a whole platform: from a chain to a receiver, across a crash of the
 * platform; and of `npx custody listen`.
 */
const platform = new TestPlatform()
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
let user: User
let url = ''
before(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await platform.start()
  user = await platform.user('hooks')
})
// A failed test may leave the receiver in the refusing mode.
beforeEach(() => {
  status = 200
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await platform.remove()
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

testEmittedEvents(
  () => platform.database,
  ['transaction.updated', 'wallet.created', 'address.created'],
)

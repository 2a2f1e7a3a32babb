import assert from 'node:assert/strict'
import { verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of invoices as the merchant and the payer use them, with a coin, a token and a coin with
 * tags, over real HTTP and real chains.
 */
const platform = new TestPlatform()
let merchant: User

interface Paid {
  transaction_id: string
  hash: string
  asset: string
  amount: string
  status: string
  counts: boolean
  note: string | null
}
interface Invoice {
  inv_id: string
  inv_status: string
  exception: string | null
  asset: string | null
  address: string | null
  address_tag: string | null
  crypto_amount: string | null
  expiry: string
  checkout_url: string
  payment_uri: string | null
  payments: Paid[]
  refundable: { asset: string; amount: string }[]
  refunds: { transaction_id: string; amount: string; status: string }[]
  [field: string]: unknown
}
interface State {
  inv_status: string
  exception: string | null
  merchant: string
  assets: { asset: string; crypto_amount: string }[]
  selected: {
    asset: string
    address: string
    address_tag: string | null
    tag_name: string | null
    crypto_amount: string
    due_amount: string
    payment_uri: string | null
  } | null
  payments: { status: string; counts: boolean; confirmations: number; required: number }[]
  [field: string]: unknown
}

before(async () => {
  await platform.start()
  merchant = await platform.user('shop')
  await fundedWallet(platform, merchant, 'BTC', '1')
  for (const asset of ['ETH', 'USDT_ETH', 'XRP']) {
    const { status, text } = await call(merchant, 'POST', '/dac/v1/create-wallet', { asset })
    assert.equal(status, 200, text)
  }
})
after(() => platform.remove())

const create = async (body: Record<string, unknown>): Promise<Invoice> => {
  const {
    status,
    body: invoice,
    text,
  } = await call<Invoice>(merchant, 'POST', '/dac/v1/invoices', body)
  assert.equal(status, 200, text)
  return invoice
}
const read = async (id: string) =>
  (await call<Invoice>(merchant, 'GET', `/dac/v1/invoices/${id}`)).body
const pay = (
  asset: string,
  address: string | null,
  amount: string | null,
  tag: string | null = null,
) => platform.operator('devnet', { command: 'fund', asset, address, amount, tag })
const choose = (id: string, asset: string) =>
  call<State>(null, 'POST', `/checkout/${id}/asset`, { asset }, { base: platform.base })

/** Returns the states of an invoice that a page receives, until a condition holds. */
async function waitForEvent(id: string, holds: (state: State) => boolean): Promise<State[]> {
  const states: State[] = []
  const response = await fetch(`${platform.base}/checkout/${id}/events`)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  let text = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      const data = /^event: state\ndata: (.*)$/m.exec(block)?.[1]
      if (data === undefined) continue
      states.push(JSON.parse(data) as State)
      // Returning from the loop closes the stream.
      if (holds(states.at(-1) as State)) return states
    }
  }
  return states
}

/** Webhook requests to the merchant's server, by path. */
const sent: {
  path: string
  type: string
  status: string
  headers: IncomingHttpHeaders
  body: string
}[] = []
const shop = createServer((request, response) => {
  void (async () => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const { type, data } = JSON.parse(body) as { type: string; data: Invoice }
    sent.push({
      path: request.url as string,
      type,
      status: data.inv_status,
      headers: request.headers,
      body,
    })
    response.end()
  })()
})
before(
  () =>
    new Promise<void>((resolve) => {
      shop.listen(0, '127.0.0.1', resolve)
    }),
)
after(() => {
  shop.close()
})
const shopUrl = (path: string) => `http://127.0.0.1:${(shop.address() as AddressInfo).port}${path}`

test('a coin payment appears on the page in its block, is settled, and can be refunded', async (t) => {
  const invoice = await create({
    fiat: 'usd',
    fiat_amount: 30,
    assets: ['BTC'],
    order_id: 'order 1',
    memo: 'One hat',
    sequence_id: 's1',
    webhook_url: shopUrl('/paid?order=1'),
  })
  assert.equal(invoice.crypto_amount, '0.0005', '30 USD at 60,000')
  assert.deepEqual([invoice.inv_status, invoice.asset, invoice.payments], ['Pending', 'BTC', []])
  assert.equal(invoice.payment_uri, `bitcoin:${invoice.address}?amount=0.0005`)
  assert.equal(invoice.checkout_url, `${platform.base}/checkout/${invoice.inv_id}`)
  const early = await call<{ message: string }>(
    merchant,
    'POST',
    `/dac/v1/invoices/${invoice.inv_id}/refund`,
    transferBody('BTC', '0.0001', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'),
  )
  assert.deepEqual(
    [early.status, early.body.message.slice(0, 31)],
    [400, 'inv_id: the invoice is open and'],
    early.text,
  )
  const page = waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Paid')
  // No further block is produced before the page has received the event of the first.
  await platform.halted('BTC', async () => {
    const seen = waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Processing')
    await pay('BTC', invoice.address, invoice.crypto_amount)
    const mined = performance.now()
    await seen
    t.diagnostic(
      `from the block to Processing on the page: ${(performance.now() - mined).toFixed()} ms`,
    )
    await platform.operator('devnet', { command: 'mine', network: 'BTC', blocks: 2 })
    await page
  })
  const states = await page
  assert.deepEqual(
    [...new Set(states.map(({ inv_status }) => inv_status))],
    ['Pending', 'Processing', 'Paid'],
  )
  assert.deepEqual(states[0]?.selected?.due_amount, '0.0005')
  assert.equal(states.at(-1)?.selected?.due_amount, '0')
  const paid = await read(invoice.inv_id)
  assert.deepEqual(
    [paid.inv_status, paid.exception, paid.payments.map(({ status, amount }) => [status, amount])],
    ['Paid', null, [['confirmed', '0.0005']]],
  )
  assert.deepEqual(paid.refundable, [{ asset: 'BTC', amount: '0.0005' }])

  await waitFor('the delivery', async () => sent.some(({ type }) => type === 'invoice.paid'))
  const callbacks = sent.filter(({ path }) => path === '/paid?order=1')
  assert.deepEqual(
    callbacks.map(({ type }) => type).filter((type) => type !== 'invoice.updated'),
    ['invoice.created', 'invoice.processing', 'invoice.paid'],
  )
  const keys = await (await fetch(`${platform.base}/.well-known/custody-webhook-key.pem`)).text()
  for (const { headers, body } of callbacks) {
    assert.ok(
      verify(
        'sha512',
        Buffer.from(body),
        keys,
        Buffer.from(String(headers['x-signature']), 'base64'),
      ),
    )
    assert.match(String(headers['webhook-signature']), /^v1,/)
  }

  const back = (amount: string, sequence: string) =>
    call<Transfer & { message: string }>(
      merchant,
      'POST',
      `/dac/v1/invoices/${invoice.inv_id}/refund`,
      transferBody('BTC', amount, 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', {
        sequence_id: sequence,
      }),
    )
  const tooMuch = await back('0.0006', 'r0')
  assert.deepEqual(
    [tooMuch.status, tooMuch.body.message],
    [
      400,
      'amount: exceeds the 0.0005 BTC that were paid for the invoice and have not been refunded',
    ],
    tooMuch.text,
  )
  const refund = await back('0.0003', 'r1')
  assert.equal(refund.status, 200, refund.text)
  assert.equal((await back('0.0003', 'r1')).headers.get('idempotent-replayed'), 'true')
  assert.equal((await back('0.0003', 'r2')).status, 400, 'what is under way counts')
  // The nodes have verified the request under its own path.
  await assertConfirmed(merchant, refund.body.id)
  const current = await read(invoice.inv_id)
  assert.deepEqual(
    current.refunds.map(({ transaction_id, amount, status }) => [transaction_id, amount, status]),
    [[refund.body.id, '0.0003', 'confirmed']],
  )
  assert.deepEqual(current.refundable, [{ asset: 'BTC', amount: '0.0002' }])
})

test('an unconfirmed payment appears on the page, and so do its cancellation and replacement', async (t) => {
  const payer = await platform.user('payer')
  await fundedWallet(platform, payer, 'BTC', '1')
  const invoice = await create({ fiat: 'USD', fiat_amount: 30, assets: ['BTC'] })
  const transfer = async () => {
    const { status, body, text } = await call<Transfer>(
      payer,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', '0.0005', invoice.address as string),
    )
    assert.equal(status, 200, text)
    return body.id
  }
  const waits = (id: string) =>
    waitFor(
      'the broadcast',
      async () => (await call<Transfer>(payer, 'GET', `/dac/v1/transaction/${id}`)).body.hash,
    )
  const paid = waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Paid')
  await platform.halted('BTC', async () => {
    const seen = waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Processing')
    const first = await transfer()
    await waits(first)
    const sentAt = performance.now()
    const [payment] = (await seen).at(-1)?.payments ?? []
    t.diagnostic(
      `from the broadcast to Processing on the page: ${(performance.now() - sentAt).toFixed()} ms`,
    )
    assert.deepEqual([payment?.status, payment?.confirmations], ['seen', 0])
    assert.equal((await read(invoice.inv_id)).payments[0]?.transaction_id, null)
    const back = waitForEvent(
      invoice.inv_id,
      ({ inv_status, payments }) => inv_status === 'Pending' && payments.length > 0,
    )
    const cancelled = await call(payer, 'POST', `/dac/v1/transaction/${first}/cancel`, {})
    assert.equal(cancelled.status, 200, cancelled.text)
    assert.deepEqual(
      (await back).at(-1)?.payments.map(({ status }) => status),
      ['dropped'],
    )
    // The next transfer spends the coins that the cancellation returns, as soon as the cancellation
    // is final.
    const second = transfer()
    await platform.operator('devnet', { command: 'mine', network: 'BTC', blocks: 3 })
    const again = waitForEvent(
      invoice.inv_id,
      ({ inv_status, payments }) => inv_status === 'Processing' && payments.length > 1,
    )
    await second
    assert.deepEqual(
      (await again).at(-1)?.payments.map(({ status }) => status),
      ['dropped', 'seen'],
    )
    await platform.operator('devnet', { command: 'mine', network: 'BTC', blocks: 3 })
    await paid
  })
  const states = (await paid).map(({ inv_status }) => inv_status)
  assert.deepEqual(
    states.filter((state, at) => state !== states[at - 1]),
    ['Pending', 'Processing', 'Pending', 'Processing', 'Paid'],
  )
})

test('a payer selects a token and pays in two parts, and each asset keeps its address', async () => {
  const invoice = await create({ fiat: 'USD', fiat_amount: '25.50' })
  assert.deepEqual([invoice.asset, invoice.address, invoice.payment_uri], [null, null, null])
  const first = await choose(invoice.inv_id, 'USDT_ETH')
  assert.equal(first.status, 200, first.text)
  assert.deepEqual(
    first.body.assets.map(({ asset }) => asset),
    ['BTC', 'ETH', 'USDT_ETH', 'XRP'],
  )
  const chosen = first.body.selected ?? assert.fail(first.text)
  const other = (await choose(invoice.inv_id, 'ETH')).body.selected
  assert.notEqual(other?.address, chosen.address)
  assert.equal(
    (await choose(invoice.inv_id, 'USDT_ETH')).body.selected?.address,
    chosen.address,
    'the same choice again changes nothing',
  )
  await pay('USDT_ETH', chosen.address, '10')
  const partial = (
    await waitForEvent(invoice.inv_id, ({ exception }) => exception === 'partial')
  ).at(-1)
  assert.deepEqual(
    [partial?.inv_status, partial?.selected?.due_amount],
    ['Pending', (Number(chosen.crypto_amount) - 10).toFixed(4).replace(/0+$/, '')],
  )
  await pay('USDT_ETH', chosen.address, partial?.selected?.due_amount as string)
  await waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Paid')
  const paid = await read(invoice.inv_id)
  assert.deepEqual([paid.inv_status, paid.exception, paid.payments.length], ['Paid', null, 2])
  const refused = await choose(invoice.inv_id, 'XRP')
  assert.deepEqual(
    [refused.status, (refused.body as unknown as { code: string }).code],
    [409, 'INVOICE_CLOSED'],
  )
})

test('on a network with tags, only a payment with the invoice’s tag pays the invoice', async () => {
  const invoice = await create({ asset: 'XRP', amount: 40 })
  assert.match(invoice.address_tag ?? '', /^\d{9}$/)
  assert.equal(invoice.payment_uri, `xrpl:${invoice.address}?amount=40&dt=${invoice.address_tag}`)
  await pay('XRP', invoice.address, '40', '7')
  await pay('XRP', invoice.address, '41', invoice.address_tag)
  const state = (await waitForEvent(invoice.inv_id, ({ inv_status }) => inv_status === 'Paid')).at(
    -1,
  )
  assert.deepEqual(
    [state?.exception, state?.payments.length, state?.selected?.tag_name],
    ['over', 1, 'destination tag'],
  )
  const paid = await read(invoice.inv_id)
  assert.deepEqual(
    [paid['excess'], paid.payments[0]?.amount],
    [[{ asset: 'XRP', amount: '1' }], '41'],
  )
})

test('an invoice that a contract pays is paid, also if it expires before the coins are found', async () => {
  const invoice = await create({
    fiat: 'USD',
    fiat_amount: 60,
    assets: ['ETH'],
    expires_in: 5,
  })
  await platform.operator('devnet', {
    command: 'special',
    network: 'ETH',
    kind: 'contract',
    address: invoice.address,
    amount: String(invoice.crypto_amount),
  })
  await waitFor('the payment', async () => (await read(invoice.inv_id)).payments.length > 0)
  await platform.operator('devnet', { command: 'mine', network: 'ETH', blocks: 80 })
  await waitFor('Paid', async () => (await read(invoice.inv_id)).inv_status === 'Paid')
  const { payments, exception } = await read(invoice.inv_id)
  assert.deepEqual(
    [payments.map(({ hash, amount, status }) => [hash, amount, status]), exception],
    [[[null, invoice.crypto_amount, 'confirmed']], null],
  )
})

test('an unpaid invoice expires, and a later payment is late until it is marked as settled', async () => {
  const invoice = await create({
    fiat: 'USD',
    fiat_amount: 6,
    assets: ['BTC'],
    expires_in: 5,
    webhook_url: shopUrl('/paid?order=2'),
  })
  await waitFor('expiry', async () => (await read(invoice.inv_id)).inv_status === 'Expired')
  // A payment counts as in time unless the chain and the mempool are known not to contain it after
  // the expiry. The scan records when it last read the chain. The mempool is read as often, but the
  // time of that is kept in memory only, so the scan must be 3 seconds past the expiry.
  await waitFor('a scan after the expiry', () =>
    platform.database.one(
      `select 1 from network_scans s, invoices i
     where s.network = 'BTC' and i.id = $1 and s.known_at > i.expires_at + interval '3 seconds'`,
      [invoice.inv_id],
    ),
  )
  await pay('BTC', invoice.address, invoice.crypto_amount)
  await waitFor(
    'the late payment',
    async () => (await read(invoice.inv_id)).payments[0]?.status === 'confirmed',
  )
  assert.deepEqual(
    await read(invoice.inv_id).then(({ inv_status, exception }) => [inv_status, exception]),
    ['Expired', 'late'],
  )
  const marked = await call<Invoice>(merchant, 'POST', `/dac/v1/invoices/${invoice.inv_id}/mark`, {
    status: 'settled',
    reason: 'the customer called',
  })
  assert.deepEqual(
    [marked.status, marked.body.inv_status, marked.body.exception],
    [200, 'Paid', 'late'],
    marked.text,
  )
  await waitFor('the delivery', async () =>
    sent.some(({ path, type }) => path === '/paid?order=2' && type === 'invoice.paid'),
  )
  const {
    body: { data: hooks },
  } = await call<{ data: { id: string; url: string }[] }>(merchant, 'GET', '/dac/v1/webhooks')
  assert.deepEqual(
    hooks.map(({ url }) => url),
    [shopUrl('')],
    'one for the server, whatever its addresses',
  )
  const bad = await call<{ message: string }>(merchant, 'POST', '/dac/v1/invoices', {
    fiat: 'USD',
    fiat_amount: 6,
    webhook_url: 'http://10.0.0.1/',
  })
  assert.deepEqual(
    [bad.status, bad.body.message.startsWith('webhook_url: 10.0.0.1 is a private')],
    [400, true],
    bad.text,
  )
})

testEmittedEvents(
  () => platform.database,
  ['invoice.created', 'invoice.updated', 'invoice.processing', 'invoice.paid', 'invoice.expired'],
)

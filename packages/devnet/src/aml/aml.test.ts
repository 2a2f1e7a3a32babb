import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
let devnet: Running
const ADDRESS = '0xAbCdEf0000000000000000000000000000000001'
const SECRET = 'c2FuZGJveA=='

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

/** The fields of all three protocols that these tests look at. */
interface Finding {
  addressRiskIndicators: { categoryRiskScoreLevel: number; categoryRiskScoreLevelLabel: string }[]
}
interface Body {
  risk: string
  risk_score: number | null
  process_status: string
}
type Answer<T = Body> = { status: number; body: T; headers: Headers }
async function ask<T = Body>(path: string, options: RequestInit = {}): Promise<Answer<T>> {
  const response = await fetch(`${devnet.url}/aml${path}`, options)
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: (text.startsWith('<') ? text : JSON.parse(text)) as T,
  }
}
const risk = (address: string, level: string) => devnet.control({ command: 'risk', address, level })

const chainalysis = (method: string, path: string, body?: unknown, token = 'sandbox') =>
  ask(`/chainalysis/api/risk/v2/entities${path}`, {
    method,
    headers: { Token: token, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
const trm = (address: string, key = 'sandbox') =>
  ask<Finding[]>('/trm/public/v2/screening/addresses', {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${key}:${key}`).toString('base64')}` },
    body: JSON.stringify([{ address, chain: 'ethereum' }]),
  })
function elliptic(
  method: string,
  path: string,
  body: string,
  o: { secret?: string; at?: number; signedPath?: string; key?: string } = {},
): Promise<Answer> {
  const timestamp = String(o.at ?? Date.now())
  const sign = createHmac('sha256', Buffer.from(o.secret ?? SECRET, 'base64'))
    .update(timestamp + method + (o.signedPath ?? path).toLowerCase() + (body || '{}'))
    .digest('base64')
  return ask(`/elliptic${path}`, {
    method,
    headers: {
      'x-access-key': o.key ?? 'sandbox',
      'x-access-timestamp': timestamp,
      'x-access-sign': sign,
    },
    ...(body ? { body } : {}),
  })
}
const wallet = (hash: string) =>
  JSON.stringify({
    subject: { asset: 'holistic', blockchain: 'holistic', type: 'address', hash },
    type: 'wallet_exposure',
    customer_reference: 'x',
  })

test('Chainalysis: addresses are registered first, with a header token; the lowest risk is Low', async () => {
  assert.equal((await chainalysis('POST', '', { address: ADDRESS }, 'wrong')).status, 403)
  assert.equal((await chainalysis('GET', `/${ADDRESS}`)).status, 404)
  assert.equal((await chainalysis('POST', '', { address: ADDRESS })).status, 201)
  assert.equal((await chainalysis('GET', `/${ADDRESS}`)).body.risk, 'Low')
  for (const [level, word] of [
    ['SEVERE', 'Severe'],
    ['HIGH', 'High'],
    ['MEDIUM', 'Medium'],
    ['LOW', 'Low'],
    ['none', 'Low'],
  ] as const) {
    await risk(ADDRESS.toLowerCase(), level)
    assert.equal((await chainalysis('GET', `/${ADDRESS}`)).body.risk, word)
  }
})

test('Elliptic: the signature covers time, method, path and body; the score can be null', async () => {
  assert.equal((await elliptic('GET', '/v2/wallet', '')).status, 200)
  assert.equal((await elliptic('GET', '/v2/wallet', '', { secret: 'bm8=' })).status, 401)
  assert.equal((await elliptic('GET', '/v2/wallet', '', { key: 'other' })).status, 401)
  assert.equal((await elliptic('GET', '/v2/wallet', '', { signedPath: '/v2/health' })).status, 401)
  assert.equal(
    (await elliptic('GET', '/v2/wallet', '', { at: Date.now() - 3_600_000 })).status,
    401,
  )
  for (const [level, score] of [
    ['SEVERE', 10],
    ['HIGH', 8],
    ['MEDIUM', 5],
    ['LOW', 1.5],
    ['none', null],
  ] as const) {
    await risk(ADDRESS, level)
    const answer = await elliptic('POST', '/v2/wallet/synchronous', wallet(ADDRESS))
    assert.deepEqual(
      [answer.status, answer.body.risk_score, answer.body.process_status],
      [200, score, 'complete'],
    )
  }
  assert.equal(
    (await elliptic('POST', '/v2/wallet/synchronous', JSON.stringify({ subject: {} }))).status,
    400,
  )
})

test('TRM: uses basic authentication, and lists for request and response', async () => {
  assert.equal((await trm(ADDRESS, 'wrong')).status, 401)
  for (const [level, score] of [
    ['SEVERE', 15],
    ['HIGH', 10],
    ['MEDIUM', 5],
    ['LOW', 1],
  ] as const) {
    await risk(ADDRESS, level)
    const { status, body } = await trm(ADDRESS)
    assert.equal(status, 201)
    assert.equal(
      Math.max(...body[0]!.addressRiskIndicators.map((each) => each.categoryRiskScoreLevel)),
      score,
    )
  }
  await risk(ADDRESS, 'none')
  assert.deepEqual((await trm(ADDRESS)).body[0]!.addressRiskIndicators, [])
})

test('a fault applies to one provider or to all; an error names the invalid field', async () => {
  await devnet.control({ command: 'fault', network: 'TRM', mode: 'rate-limited' })
  assert.deepEqual(
    [(await trm(ADDRESS)).status, (await chainalysis('GET', `/${ADDRESS}`)).status],
    [429, 200],
  )
  await devnet.control({ command: 'fault', network: 'AML', mode: 'revoked' })
  assert.deepEqual(
    [
      (await trm(ADDRESS)).status,
      (await chainalysis('GET', `/${ADDRESS}`)).status,
      (await elliptic('GET', '/v2/wallet', '')).status,
    ],
    [401, 403, 401],
  )
  await devnet.control({ command: 'fault', network: 'AML', mode: 'malformed' })
  assert.match(String((await trm(ADDRESS)).body), /^<html>/)
  await devnet.control({ command: 'fault', network: 'AML', mode: 'down' })
  await assert.rejects(trm(ADDRESS))
  await devnet.control({ command: 'fault', network: 'AML', mode: 'heal' })
  assert.equal((await trm(ADDRESS)).status, 201)
  await assert.rejects(
    devnet.control({ command: 'fault', network: 'AML', mode: 'sleepy' }),
    /is unknown; must be one of heal, down/,
  )
  await assert.rejects(
    devnet.control({ command: 'risk', address: ADDRESS, level: 'GRAVE' }),
    /one of SEVERE, HIGH, MEDIUM, LOW, none/,
  )
  await assert.rejects(
    devnet.control({ command: 'risk', address: '', level: 'HIGH' }),
    /is not an address/,
  )
})

test('risks remain after kill -9; only base58 addresses are case-sensitive, not bech32 ones', async () => {
  await risk(ADDRESS, 'HIGH')
  await risk('BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080', 'SEVERE')
  await risk('rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', 'MEDIUM')
  await devnet.killAll()
  devnet = await startDevnet(home)
  assert.equal(
    (await trm(ADDRESS.toUpperCase().replace('0X', '0x'))).body[0]!.addressRiskIndicators[0]!
      .categoryRiskScoreLevelLabel,
    'High',
  )
  assert.equal(
    (await trm('bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080')).body[0]!.addressRiskIndicators
      .length,
    2,
  )
  assert.equal(
    (await trm('rpt1sjq2ygrbmtttx4gzhjku9dyfzbpaye')).body[0]!.addressRiskIndicators.length,
    0,
  )
})

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { systemEnvironment } from '../../core/environment.ts'
import { readLevels, readProvider } from './levels.ts'
import { chainalysis } from './providers/chainalysis.ts'
import { elliptic } from './providers/elliptic.ts'
import { ProviderError, ProviderHttp, type Provider } from './providers/provider.ts'
import { unpaced } from './providers/pace.ts'
import { trm } from './providers/trm.ts'

/**
 * A request that a provider received. The tests respond in the formats that the providers document.
 */
interface Seen {
  url: string
  method: string
  headers: Record<string, string>
  body: string
}
function scripted(...answers: (readonly [number, unknown] | 'cut' | 'silent')[]) {
  const seen: Seen[] = []
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    seen.push({
      url,
      method: String(init.method),
      headers: Object.fromEntries(new Headers(init.headers)),
      body: String(init.body ?? ''),
    })
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    if (answer === 'cut') throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
    if (answer === 'silent')
      return new Promise((_, reject) =>
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    const [status, body] = answer as readonly [number, unknown]
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })
  }
  return {
    seen,
    http: new ProviderHttp(
      fetch,
      { ...systemEnvironment(), sleep: async () => undefined },
      unpaced,
      50,
    ),
  }
}

const ADDRESS = '0x1da5821544e25c636c1417Ba96Ade4Cf6D2f9B5A'
const SUBJECT = { address: ADDRESS, network: 'ETH' }
const entity = (risk: unknown) =>
  [
    200,
    {
      address: ADDRESS,
      risk,
      riskReason: null,
      addressType: 'PRIVATE_WALLET',
      cluster: null,
      addressIdentifications: [],
      exposures: [{ category: 'exchange', value: 12.5 }],
      triggers: [],
      status: 'COMPLETE',
    },
  ] as const
const registered = [201, { address: ADDRESS }] as const
const wallet = (score: unknown, more: Record<string, unknown> = {}) =>
  [
    200,
    {
      id: '1',
      type: 'wallet_exposure',
      subject: { asset: 'holistic', type: 'address', hash: ADDRESS },
      risk_score: score,
      risk_score_detail: { source: null, destination: null },
      error: null,
      process_status: 'complete',
      ...more,
    },
  ] as const
const finding = (scores: unknown[], more: Record<string, unknown> = {}) =>
  [
    201,
    [
      {
        accountExternalId: null,
        address: ADDRESS.toLowerCase(),
        addressSubmitted: ADDRESS,
        chain: 'ethereum',
        addressRiskIndicators: scores.map((score) => ({
          category: 'Sanctions',
          categoryId: '69',
          categoryRiskScoreLevel: score,
          categoryRiskScoreLevelLabel: '',
          riskType: 'OWNERSHIP',
          totalVolumeUsd: '0',
        })),
        entities: [],
        trmAppUrl: '',
        ...more,
      },
    ],
  ] as const

test('Chainalysis: registers the address, then queries it; the token is in a header', async () => {
  for (const [word, level] of [
    ['Severe', 'SEVERE'],
    ['High', 'HIGH'],
    ['Medium', 'MEDIUM'],
    ['Low', 'LOW'],
  ] as const) {
    const { seen, http } = scripted(registered, entity(word))
    assert.equal(await chainalysis('https://host', http).screen('key', SUBJECT), level)
    assert.deepEqual(
      seen.map(({ method, url }) => `${method} ${url}`),
      [
        'POST https://host/api/risk/v2/entities',
        `GET https://host/api/risk/v2/entities/${ADDRESS}`,
      ],
    )
    assert.deepEqual(
      [seen[0]?.headers['token'], seen[0]?.body],
      ['key', JSON.stringify({ address: ADDRESS })],
    )
  }
})

test('Elliptic: signs time, method, lower-case path and body; maps scores to risk levels', async () => {
  const key = `me:${Buffer.from('secret').toString('base64')}`
  for (const [score, level] of [
    [10, 'SEVERE'],
    [9, 'SEVERE'],
    [8.99, 'HIGH'],
    [7, 'HIGH'],
    [6.9, 'MEDIUM'],
    [4, 'MEDIUM'],
    [0.1, 'LOW'],
    [0, null],
    [null, null],
  ] as const) {
    const { seen, http } = scripted(wallet(score))
    assert.equal(
      await elliptic('https://host', http, [9, 7, 4]).screen(key, SUBJECT),
      level,
      String(score),
    )
    const [{ headers, body, url }] = seen as [Seen]
    assert.equal(url, 'https://host/v2/wallet/synchronous')
    assert.deepEqual(JSON.parse(body), {
      subject: { asset: 'holistic', blockchain: 'holistic', type: 'address', hash: ADDRESS },
      type: 'wallet_exposure',
      customer_reference: 'custody',
    })
    assert.equal(headers['x-access-key'], 'me')
    assert.equal(
      headers['x-access-sign'],
      createHmac('sha256', 'secret')
        .update(`${headers['x-access-timestamp']}POST/v2/wallet/synchronous${body}`)
        .digest('base64'),
    )
  }
  const { http } = scripted([
    404,
    { name: 'NotInBlockchain', message: 'The address has not been seen' },
  ])
  assert.equal(await elliptic('https://host', http, [9, 7, 4]).screen(key, SUBJECT), null)
})

test('TRM: sends each address with its chain, and uses the highest score', async () => {
  for (const [scores, level] of [
    [[1, 15, 5], 'SEVERE'],
    [[10, 1], 'HIGH'],
    [[5], 'MEDIUM'],
    [[1], 'LOW'],
    [[0], null],
    [[], null],
  ] as const) {
    const { seen, http } = scripted(finding([...scores]))
    assert.equal(await trm('https://host', http, {}).screen('key', SUBJECT), level)
    const [{ url, body, headers }] = seen as [Seen]
    assert.deepEqual(
      [url, JSON.parse(body)],
      ['https://host/public/v2/screening/addresses', [{ address: ADDRESS, chain: 'ethereum' }]],
    )
    assert.equal(headers['authorization'], `Basic ${Buffer.from('key:key').toString('base64')}`)
  }
  const { http } = scripted(
    finding([1], {
      entities: [
        { category: 'Sanctions', entity: 'X', riskScoreLevel: 15, riskScoreLevelLabel: 'Severe' },
      ],
    }),
  )
  assert.equal(await trm('https://host', http, {}).screen('key', SUBJECT), 'SEVERE')
  const other = scripted(finding([]))
  await trm('https://host', other.http, { ETH: 'ethereum_pow' }).screen('key', SUBJECT)
  assert.equal(JSON.parse(other.seen[0]?.body as string)[0].chain, 'ethereum_pow')
})

const NOBODY = '0x0000000000000000000000000000000000000001'
const OTHER = '0x0000000000000000000000000000000000000002'
const UNUSABLE: Record<string, (readonly (readonly [number, unknown])[])[]> = {
  CHAINALYSIS: [
    [registered, entity('Grave')],
    [registered, entity(null)],
    [registered, entity(undefined)],
    [registered, [200, {}]],
    [registered, [200, '']],
    [registered, [200, '<html>']],
    [registered, [200, '[]']],
    [registered, [404, { message: 'not found' }]],
    [[400, { message: 'bad' }]],
    [[200, '']],
    [registered, [200, { address: OTHER, risk: 'Low' }]],
    [registered, [302, '']],
  ],
  ELLIPTIC: [
    [wallet('9')],
    [wallet(undefined)],
    [wallet(11)],
    [wallet(-1)],
    [wallet(0, { process_status: 'running' })],
    [wallet(0, { error: { message: 'no' } })],
    [[200, '']],
    [[200, 'null']],
    [[200, {}]],
    [[404, { name: 'NotFound' }]],
    [[400, {}]],
    [wallet(0, { subject: { hash: OTHER } })],
  ],
  TRM: [
    [finding([2])],
    [finding(['15'])],
    [[201, []]],
    [[201, {}]],
    [[201, [null]]],
    [[201, '']],
    [[200, [{ addressSubmitted: ADDRESS }]]],
    [[400, {}]],
    [[201, [finding([])[1][0], finding([])[1][0]]]],
    [finding([], { addressSubmitted: OTHER })],
    [finding([0], { entities: [{ riskScoreLevel: 99 }] })],
  ],
}
const make = (name: string, http: ProviderHttp): Provider =>
  name === 'CHAINALYSIS'
    ? chainalysis('https://host', http)
    : name === 'ELLIPTIC'
      ? elliptic('https://host', http, [9, 7, 4])
      : trm('https://host', http, {})
const TOKEN = 'me:c2VjcmV0'

for (const name of ['CHAINALYSIS', 'ELLIPTIC', 'TRM']) {
  test(`${name}: an empty, malformed or unknown response is an error, and never means no risk`, async () => {
    for (const answers of UNUSABLE[name] as (typeof UNUSABLE)[string]) {
      const { http } = scripted(...answers)
      await assert.rejects(
        make(name, http).screen(TOKEN, SUBJECT),
        (error) => error instanceof ProviderError && error.kind === 'unusable',
        JSON.stringify(answers),
      )
    }
  })

  test(`${name}: tries three times if unreachable or failing, and once if rate limited or refused`, async () => {
    for (const [answer, kind, tries] of [
      ['cut', 'unreachable', 3],
      ['silent', 'unreachable', 3],
      [[500, {}], 'unreachable', 3],
      [[503, 'busy'], 'unreachable', 3],
      [[429, {}], 'rate-limited', 1],
      [[401, {}], 'refused', 1],
      [[403, {}], 'refused', 1],
    ] as const) {
      const { seen, http } = scripted(answer)
      await assert.rejects(
        make(name, http).screen(TOKEN, SUBJECT),
        (error) =>
          error instanceof ProviderError &&
          error.kind === kind &&
          !error.message.includes('c2VjcmV0'),
        String(kind),
      )
      assert.equal(seen.length, tries)
    }
  })

  test(`${name}: a token is valid only if the provider itself accepts it`, async () => {
    const good =
      name === 'TRM'
        ? ([201, [{ address: NOBODY, addressRiskIndicators: [] }]] as const)
        : name === 'ELLIPTIC'
          ? ([200, { items: [] }] as const)
          : ([404, { message: 'not registered' }] as const)
    assert.equal(await make(name, scripted(good).http).verifyToken(TOKEN), true)
    assert.equal(
      await make(name, scripted([name === 'CHAINALYSIS' ? 403 : 401, {}]).http).verifyToken(TOKEN),
      false,
    )
    for (const answer of [
      'cut',
      'silent',
      [500, {}],
      [429, {}],
      [418, {}],
      [200, ''],
      [200, '<html>'],
      [200, {}],
      [200, []],
    ] as const)
      await assert.rejects(make(name, scripted(answer).http).verifyToken(TOKEN), ProviderError)
  })
}

test('reads risk levels and provider names in any letter case, and returns them in upper case', () => {
  assert.deepEqual(readLevels(' low,SEVERE , High,low'), ['SEVERE', 'HIGH', 'LOW'])
  for (const text of ['', 'HIGH,', 'GRAVE', 'HIGH;LOW'])
    assert.throws(() => readLevels(text), /aml_risk_levels/)
  assert.equal(readProvider(' elliptic '), 'ELLIPTIC')
  assert.throws(() => readProvider('ACME'), /CHAINALYSIS, ELLIPTIC, TRM/)
})

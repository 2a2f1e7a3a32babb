import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import * as fc from '../../../../../testing/property.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { LEVELS, PROVIDERS, type ProviderName, type RiskLevel } from './levels.ts'
import { chainalysis } from './providers/chainalysis.ts'
import { elliptic } from './providers/elliptic.ts'
import { databasePace, INTERVAL_MS, retryAt, unpaced } from './providers/pace.ts'
import { isSameText, ProviderError, ProviderHttp, type Provider } from './providers/provider.ts'
import { EXPOSURE_USD, judge, trm, type Risk } from './providers/trm.ts'

/** Tests of what decides about an address, against the providers' documented responses. */
const database = useDatabase({ migrated: true })
const home = mkdtempSync(join(tmpdir(), 'custody-screening-rules-'))
let devnet: Devnet
before(async () => {
  devnet = await Devnet.start(home, 0, { manual: true, families: [] })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

const NONE = null
test('ownership and direct exposure decide, and dust and indirect exposure only alert', () => {
  const risk = (kind: Risk['kind'], level: RiskLevel | null, volumeUsd: number | null): Risk => ({
    kind,
    level,
    volumeUsd,
  })
  for (const [risks, decides, alerts] of [
    [[], NONE, NONE],
    [[risk('OWNERSHIP', 'SEVERE', 0)], 'SEVERE', NONE],
    [[risk('OWNERSHIP', 'SEVERE', null)], 'SEVERE', NONE],
    [[risk('OWNERSHIP', null, 5)], NONE, NONE],
    [[risk('COUNTERPARTY', 'SEVERE', 0)], NONE, 'SEVERE'],
    [[risk('COUNTERPARTY', 'SEVERE', null)], NONE, 'SEVERE'],
    [[risk('COUNTERPARTY', 'SEVERE', EXPOSURE_USD - 0.01)], NONE, 'SEVERE'],
    [[risk('COUNTERPARTY', 'SEVERE', EXPOSURE_USD)], 'SEVERE', NONE],
    [[risk('COUNTERPARTY', 'HIGH', 1e9)], 'HIGH', NONE],
    [[risk('INDIRECT', 'SEVERE', 1e9)], NONE, 'SEVERE'],
    [[risk(null, 'HIGH', 0)], 'HIGH', NONE],
    [[risk('COUNTERPARTY', 'SEVERE', 1), risk('OWNERSHIP', 'LOW', 0)], 'LOW', 'SEVERE'],
  ] as const)
    assert.deepEqual(judge(risks, EXPOSURE_USD), { decides, alerts }, JSON.stringify(risks))
})

test('no amount of dust or of unrated categories changes what decides, in any order', () => {
  const level = fc.constantFrom<RiskLevel | null>(...LEVELS, null)
  const decisive = fc.record<Risk>({
    level,
    kind: fc.constantFrom('OWNERSHIP', null),
    volumeUsd: fc.constantFrom(null, 0, 1e6),
  })
  const dust = fc.oneof(
    fc.record<Risk>({
      level,
      kind: fc.constant('COUNTERPARTY'),
      volumeUsd: fc.constantFrom(null, 0, 0.01, EXPOSURE_USD - 1),
    }),
    fc.record<Risk>({
      level,
      kind: fc.constant('INDIRECT'),
      volumeUsd: fc.constantFrom(null, 0, 1e9),
    }),
    fc.record<Risk>({
      level: fc.constant(null),
      kind: fc.constantFrom('OWNERSHIP', 'COUNTERPARTY', null),
      volumeUsd: fc.constant(1e9),
    }),
  )
  fc.assert(
    fc.property(
      fc.array(decisive, { maxLength: 5 }),
      fc.array(dust, { maxLength: 20 }),
      fc.nat(),
      (risks, noise, seed) => {
        const mixed = [...risks, ...noise]
          .map((each, at) => ({ each, at: (at * 7919 + seed) % 101 }))
          .sort((a, b) => a.at - b.at)
          .map(({ each }) => each)
        assert.equal(
          judge(mixed, EXPOSURE_USD).decides,
          judge(risks, EXPOSURE_USD).decides,
          JSON.stringify(mixed),
        )
      },
    ),
  )
})

const MIXED = '0x1da5821544e25c636c1417Ba96Ade4Cf6D2f9B5A'
test('an address is compared without regard to letter case exactly where its form has none', () => {
  for (const [address, isFree] of [
    [MIXED, true],
    ['BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ', true],
    ['bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a', true],
    ['addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8', true],
    ['1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', false],
    ['TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', false],
    ['rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', false],
    ['GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7', false],
    ['So11111111111111111111111111111111111111112', false],
  ] as const) {
    assert.equal(isSameText(address, address), true, address)
    for (const other of [address.toLowerCase(), address.toUpperCase()])
      if (other !== address) assert.equal(isSameText(other, address), isFree, `${other} ${address}`)
    for (const wrong of [undefined, null, 1, '', `${address}0`, address.slice(1)])
      assert.equal(isSameText(wrong, address), false)
  }
})

const TOKENS: Record<ProviderName, string> = {
  CHAINALYSIS: 'sandbox',
  ELLIPTIC: `sandbox:${Buffer.from('sandbox').toString('base64')}`,
  TRM: 'sandbox',
}
const environment = { ...systemEnvironment(), sleep: async () => undefined }
const providersAt = (http: ProviderHttp): Record<ProviderName, Provider> => ({
  CHAINALYSIS: chainalysis(`${devnet.url}/aml/chainalysis`, http),
  ELLIPTIC: elliptic(`${devnet.url}/aml/elliptic`, http, [9, 7, 4]),
  TRM: trm(`${devnet.url}/aml/trm`, http, {}),
})
const control = async (body: object) => {
  const response = await fetch(`${devnet.url}/control`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  assert.equal(response.status, 200, await response.text())
}

test('each documented oddity of each emulated provider leads to a result or a clear error', async () => {
  await control({ command: 'risk', address: MIXED, level: 'SEVERE' })
  const providers = providersAt(new ProviderHttp(fetch, environment, unpaced))
  const SEVERE: Record<ProviderName, RiskLevel | null | string> = {
    CHAINALYSIS: 'SEVERE',
    ELLIPTIC: 'SEVERE',
    TRM: 'SEVERE',
  }
  const all = (kind: string) => ({ CHAINALYSIS: kind, ELLIPTIC: kind, TRM: kind })
  const EXPECTED: Record<string, Record<ProviderName, RiskLevel | null | string>> = {
    heal: SEVERE,
    'lower-case': SEVERE,
    nulls: { ...SEVERE, ELLIPTIC: null, TRM: null },
    dust: { ...SEVERE, TRM: null },
    'rate-limited': all('rate-limited'),
    malformed: all('unusable'),
    'forbidden-page': all('unusable'),
    empty: all('unusable'),
    unknown: all('unusable'),
    revoked: all('refused'),
    reject: all('unreachable'),
  }
  for (const [mode, expected] of Object.entries(EXPECTED)) {
    await control({ command: 'fault', network: 'AML', mode })
    for (const name of PROVIDERS) {
      const alerts: RiskLevel[] = []
      const result = await providers[name]
        .screen(TOKENS[name], { address: MIXED, network: 'ETH' }, (level) => alerts.push(level))
        .catch((error: unknown) => {
          assert.ok(error instanceof ProviderError, String(error))
          if (mode === 'rate-limited')
            assert.ok(
              error.retryAfterMs !== null && Math.abs(error.retryAfterMs - 60_000) <= 1500,
              `${name} ${error.retryAfterMs}`,
            )
          return error.kind
        })
      assert.equal(result, expected[name], `${name} ${mode}`)
      const noted = mode === 'dust' ? ['SEVERE'] : expected.TRM === 'SEVERE' ? ['LOW'] : []
      assert.deepEqual(alerts, name === 'TRM' ? noted : [], `${name} ${mode}`)
      // A page of a firewall proves nothing about a token.
      if (mode === 'forbidden-page')
        await assert.rejects(providers[name].verifyToken(TOKENS[name]), { kind: 'unusable' })
    }
  }
  await control({ command: 'fault', network: 'AML', mode: 'heal' })
})

test('reads the time to wait from every documented header of a 429 response', () => {
  const now = Date.UTC(2026, 10, 29, 12)
  const at = (headers: Record<string, string>) => retryAt(new Headers(headers), now) - now
  assert.deepEqual(
    [
      at({ 'Retry-After': '7' }),
      at({ 'Retry-After': new Date(now + 30_000).toUTCString() }),
      at({ 'X-RateLimit-Reset': String(now / 1000 + 42) }),
      at({ 'X-RateLimit-Reset': '42' }),
      at({ 'RateLimit-Reset': '5' }),
      at({ 'Retry-After': '3', 'X-RateLimit-Reset': '42' }),
      at({ 'Retry-After': 'soon', 'X-RateLimit-Reset': '9' }),
      at({}),
      at({ 'Retry-After': '0' }),
      at({ 'Retry-After': '999999' }),
      at({ 'X-RateLimit-Reset': String(now / 1000 - 100) }),
    ],
    [7000, 30_000, 42_000, 42_000, 5000, 3000, 9000, 60_000, 1000, 900_000, 1000],
  )
})

/** An environment whose sleeps only advance its clock. */
function simulated() {
  let now = Date.UTC(2026, 10, 29)
  return {
    ...systemEnvironment(),
    now: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
    advance: (ms: number) => {
      now += ms
    },
  }
}

test('requests of one token keep the documented limits, over all processes', async () => {
  for (const [provider, windows] of [
    ['TRM', [[1000, 10]]],
    [
      'ELLIPTIC',
      [
        [1000, 15],
        [60_000, 500],
      ],
    ],
  ] as const) {
    const clock = simulated()
    const processes = [1, 2, 3].map(() => databasePace(database.get(), clock))
    const sent: number[] = []
    for (let at = 0; at < 700; at++) {
      // Each process would send immediately.
      await processes[at % 3]!.wait(provider, 'token')
      sent.push(clock.now())
    }
    for (const [windowMs, most] of windows) {
      const counts = sent.map(
        (from, n) => sent.slice(n).filter((each) => each < from + windowMs).length,
      )
      assert.ok(Math.max(...counts) <= most, `${provider} ${windowMs}: ${Math.max(...counts)}`)
    }
  }
  const clock = simulated()
  const pace = databasePace(database.get(), clock)
  const began = clock.now()
  for (let at = 0; at < 50; at++) await pace.wait('TRM', `token ${at}`)
  for (let at = 0; at < 50; at++) await pace.wait('CHAINALYSIS', 'token')
  assert.equal(clock.now(), began, 'another token or an unlimited provider does not wait')
  assert.deepEqual(Object.keys(INTERVAL_MS).sort(), [...PROVIDERS].sort())
})

test('a burst waits at most some seconds, and further requests get a time to retry', async () => {
  const stopped = { ...simulated(), sleep: async () => undefined }
  const pace = databasePace(database.get(), stopped)
  const results = await Promise.allSettled(
    Array.from({ length: 200 }, () => pace.wait('TRM', 'burst')),
  )
  const refused = results.filter((each) => each.status === 'rejected')
  assert.ok(refused.length > 100 && refused.length < 160, String(refused.length))
  for (const { reason } of refused) {
    assert.ok(reason instanceof ProviderError)
    assert.equal(reason.kind, 'rate-limited')
    assert.ok(reason.retryAfterMs !== null && reason.retryAfterMs > 0 && reason.retryAfterMs < 6000)
  }
})

test('after a 429 response no process sends another request before the stated time', async () => {
  const clock = simulated()
  let requests = 0
  const limited = async () => {
    requests++
    return new Response('{}', { status: 429, headers: { 'retry-after': '30' } })
  }
  const [one, other] = [1, 2].map(
    () =>
      trm(
        'https://host',
        new ProviderHttp(limited as typeof fetch, clock, databasePace(database.get(), clock)),
        {},
      ) as Provider,
  ) as [Provider, Provider]
  const subject = { address: MIXED, network: 'ETH' }
  await assert.rejects(one.screen('t429', subject), { kind: 'rate-limited', retryAfterMs: 30_000 })
  for (const provider of [one, other])
    await assert.rejects(provider.screen('t429', subject), { kind: 'rate-limited' })
  assert.equal(requests, 1)
  clock.advance(30_000)
  await assert.rejects(other.screen('t429', subject), { kind: 'rate-limited' })
  assert.equal(requests, 2)
})

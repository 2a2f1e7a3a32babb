import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DepositFixture, useDatabase } from '../../../testing/deposits-support.ts'
import { trustEndpoints } from './endpoints.ts'

const database = useDatabase()

test('endpoints are trusted for at most a day, and no longer with 0; anything else changes nothing', async () => {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  const { services } = fixture
  const { code } = services.networks.all()[0]!.network
  const seconds = async () => {
    const now = database.get().now()
    const row = await database
      .get()
      .one<{ s: number | null }>(
        'select extract(epoch from trusted_until - $2)::float8 s from network_scans where network = $1',
        [code, now],
      )
    return row?.s ?? null
  }
  for (const wrong of ['2d', '25h', '1441m', '-1h', '1.5h', 'h', '', undefined])
    await assert.rejects(
      trustEndpoints(services, { network: code, for: wrong }),
      /^OperatorError: --for: /,
    )
  await assert.rejects(
    trustEndpoints(services, { network: 'NONE', for: '1h' }),
    /NETWORK: NONE has no endpoint; must be one of /,
  )
  assert.equal(await seconds(), null)
  for (const [text, least, most] of [
    ['1440m', 86_000, 86_400],
    ['30m', 1500, 1800],
    ['0', -300, 0],
  ] as const) {
    await trustEndpoints(services, { network: code, for: text })
    const left = (await seconds()) as number
    assert.ok(left > least && left <= most, `${text}: ${left}`)
  }
})

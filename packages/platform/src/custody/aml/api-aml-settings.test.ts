import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call } from '../../../testing/harness.ts'

const api = useApi()
before(() => api.started)

test('warns if the saved settings pass a risk level although they hold a lower one', async () => {
  const user = await api.user()
  const save = (levels: string) =>
    call<{ aml_risk_levels: string; warning: string | null }>(user, 'POST', '/dac/v1/aml', {
      provider: 'CHAINALYSIS',
      aml_token: 'sandbox',
      aml_risk_levels: levels,
      aml_deposit: true,
      aml_withdrawal: true,
    })
  for (const [levels, passing] of [
    ['HIGH', 'SEVERE'],
    ['low', 'SEVERE or HIGH or MEDIUM'],
    ['SEVERE, MEDIUM', 'HIGH'],
    ['HIGH,LOW', 'SEVERE or MEDIUM'],
    ['SEVERE', null],
    ['SEVERE, HIGH', null],
    ['LOW,MEDIUM,HIGH,SEVERE', null],
  ] as const) {
    const saved = await save(levels)
    assert.equal(saved.status, 200, saved.text)
    const read = await call<{ warning: string | null }>(user, 'GET', '/dac/v1/aml')
    for (const { warning } of [saved.body, read.body]) {
      if (passing === null) assert.equal(warning, null, levels)
      else
        assert.match(
          warning ?? '',
          new RegExp(`^addresses of the level ${passing} are not held`),
          levels,
        )
    }
  }
})

test('the value below which an unknown sender does not hold a deposit is saved exactly, or refused', async () => {
  const user = await api.user()
  const save = (usd: unknown) =>
    call<{ aml_unknown_sender_usd: string; message: string; field: string }>(
      user,
      'POST',
      '/dac/v1/aml',
      {
        provider: 'CHAINALYSIS',
        aml_token: 'sandbox',
        aml_risk_levels: 'SEVERE',
        aml_deposit: true,
        aml_withdrawal: true,
        ...(usd === undefined ? {} : { aml_unknown_sender_usd: usd }),
      },
    )
  const read = async () =>
    (await call<{ aml_unknown_sender_usd: string }>(user, 'GET', '/dac/v1/aml')).body
      .aml_unknown_sender_usd
  for (const [usd, saved] of [
    [undefined, '0'],
    [49.999999, '49.999999'],
    ['50', '50'],
    [1_000_000, '1000000'],
    [0, '0'],
  ] as const) {
    const answer = await save(usd)
    assert.deepEqual([answer.status, answer.body.aml_unknown_sender_usd], [200, saved], answer.text)
    assert.equal(await read(), saved)
  }
  await save(7)
  for (const usd of [-1, '0.0000001', 1_000_000.000001, 'fifty', {}, true]) {
    const answer = await save(usd)
    assert.deepEqual(
      [answer.status, answer.body.field],
      [400, 'aml_unknown_sender_usd'],
      String(usd),
    )
  }
  assert.equal(await read(), '7')
})

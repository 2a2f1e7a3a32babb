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

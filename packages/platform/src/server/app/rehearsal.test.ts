// A rehearsal refuses what acts on the real networks for its addresses, which are other people's there.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call } from '../../../testing/harness.ts'

const api = useApi({ network: 'regtest-1337' })
before(() => api.started)

test('a screening provider is refused, unless the operator has named an emulator', async () => {
  const user = await api.user()
  const save = (provider: string) =>
    call<{ field?: string; detail?: string }>(user, 'POST', '/dac/v1/aml', {
      provider,
      aml_token: 'sandbox',
      aml_risk_levels: 'SEVERE',
      aml_deposit: true,
      aml_withdrawal: true,
    })
  for (const provider of ['CHAINALYSIS', 'ELLIPTIC']) {
    const { status, body } = await save(provider)
    assert.deepEqual([status, body.field], [400, 'provider'])
    assert.match(String(body.detail), new RegExp(`CUSTODY_AML_${provider}_URL`))
  }
  assert.equal((await save('TRM')).status, 200)
})

test('no exchange can be linked', async () => {
  const user = await api.user()
  const { status, body } = await call(user, 'POST', '/dac/v1/exchange-accounts', {
    exchange: 'kraken',
    label: 'main',
    api_key: 'key',
    api_secret: 'secret',
  })
  assert.deepEqual([status, body['field']], [400, 'exchange'], JSON.stringify(body))
  assert.match(String(body['detail']), /a rehearsal has none/)
  const listed = await call(user, 'GET', '/dac/v1/exchanges')
  assert.deepEqual(listed.body, { data: [] })
})

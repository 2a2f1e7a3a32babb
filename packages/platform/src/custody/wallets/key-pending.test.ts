import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call } from '../../../testing/harness.ts'
import { ApiError } from '../../core/errors.ts'

/** The key of a new workspace is not ready when its first wallet is created. */
const api = useApi()
before(() => api.started)

test('create-wallet answers 503 with Retry-After and creates nothing, and the retry creates the wallet', async () => {
  const user = await api.user(randomUUID())
  const keys = api.services.keys.get
  api.services.keys.get = async () => {
    throw new ApiError('KEY_PENDING', 'nothing was created', { retryAfterS: 17 })
  }
  try {
    for (const path of ['/dac/v1/create-wallet', '/dac/v1/wallet']) {
      const refused = await call<{ code: string }>(user, 'POST', path, { asset: 'BTC' })
      assert.deepEqual([refused.status, refused.body.code], [503, 'KEY_PENDING'], refused.text)
      assert.equal(refused.headers.get('retry-after'), '17')
    }
  } finally {
    api.services.keys.get = keys
  }
  const list = await call<{ id: string }[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')
  assert.deepEqual(list.body, [])
  const made = await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  assert.equal(made.status, 200, made.text)
})

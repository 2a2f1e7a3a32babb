import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { localUtxoChains } from '../bitcoin/local.ts'
import { Devnet } from '../devnet.ts'
import { removeHome, tempHome } from '../../testing/support.ts'
import { clientOf, newKey, type Client, type Key } from '../../testing/venue-support.ts'

/** Tests of the calls by which an exchange tells the ID of an account, used with unmodified ccxt. */
const home = tempHome()
const start = (at = home) => Devnet.start(at, 0, { manual: true, families: [localUtxoChains] })
let devnet: Devnet
before(async () => {
  devnet = await start()
})
after(() => {
  devnet.close()
  removeHome(home)
})

const CALLS: Record<'kraken' | 'binance', { ask(client: Client): Promise<unknown>; form: RegExp }> =
  {
    kraken: {
      ask: async (client) =>
        (
          (await client.request('GetApiKeyInfo', 'private', 'POST')) as {
            result: { iban: string }
          }
        ).result.iban,
      form: /^AA[A-Z2-7]{2} N84G [A-Z2-7]{4} [A-Z2-7]{4}$/,
    },
    binance: {
      ask: async (client) =>
        ((await client.request('account', 'private', 'GET')) as { uid: number }).uid,
      form: /^[1-9]\d{8}$/,
    },
  }

for (const exchange of ['kraken', 'binance'] as const) {
  const { ask, form } = CALLS[exchange]
  const idOf = async (of: Devnet, key: Key) => String(await ask(await clientOf(exchange, of, key)))

  test(`${exchange}: all keys of an account have its ID, and each account has its own`, async () => {
    const first = await newKey(devnet, exchange)
    const keys = [first]
    for (const permissions of ['query', 'query,trade', 'query,trade,withdraw'])
      keys.push(await newKey(devnet, exchange, { account_of: first.api_key, permissions }))
    const ids = new Set<string>()
    for (const key of keys) ids.add(await idOf(devnet, key))
    assert.equal(ids.size, 1)
    const [id] = [...ids] as [string]
    assert.match(id, form)
    for (let at = 0; at < 5; at++) ids.add(await idOf(devnet, await newKey(devnet, exchange)))
    assert.equal(ids.size, 6)
    devnet.close()
    devnet = await start()
    assert.equal(await idOf(devnet, first), id, 'also after a restart')
  })

  test(`${exchange}: accounts of another installation have other IDs`, async () => {
    const id = await idOf(devnet, await newKey(devnet, exchange))
    const elsewhere = tempHome()
    const other = await start(elsewhere)
    try {
      for (let at = 0; at < 3; at++)
        assert.notEqual(await idOf(other, await newKey(other, exchange)), id)
    } finally {
      other.close()
      removeHome(elsewhere)
    }
  })
}

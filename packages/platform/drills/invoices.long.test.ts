import assert from 'node:assert/strict'
import { test } from 'node:test'
import { useDatabase } from '../testing/deposits-support.ts'
import { InvoiceFixture } from '../testing/invoices-fixture.ts'

let current: InvoiceFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const COUNT = 1000

test('all of 1,000 API-created invoices paid in one block are screened and credited', async (t) => {
  const fixture = (current = await new InvoiceFixture(database.get(), 'evm').begin())
  const timed = async (what: string, run: () => Promise<unknown>): Promise<void> => {
    const began = performance.now()
    await run()
    t.diagnostic(`${what}: ${(performance.now() - began).toFixed()} ms`)
  }
  const states = async () =>
    (
      await fixture.database.query<{ status: string; n: string }>(
        'select status, count(*)::text n from invoices where exception is null group by status',
      )
    ).map(({ status, n }) => `${n} ${status}`)
  const addresses: (string | null)[] = []
  await timed('made', async () => {
    for (let count = 0; count < COUNT; count++)
      addresses.push(
        (await fixture.create({ fiat: 'USD', fiat_amount: 100, assets: ['USDT_ETH'] })).address,
      )
  })
  assert.equal(new Set(addresses).size, COUNT)
  fixture.pay(...addresses.map((address) => ({ address, asset: 'USDT_ETH', amount: 100_000_000n })))
  await timed('scanned', () => fixture.scan())
  await timed('to Processing', () => fixture.look())
  assert.deepEqual(await states(), [`${COUNT} Processing`])
  fixture.chain.bury()
  await timed('screened, credited and Paid', () => fixture.settle())
  assert.deepEqual(await states(), [`${COUNT} Paid`])
  const credited = await fixture.database.one<{ total: string }>(
    `select coalesce(sum(amount), 0)::text total from transactions where kind = 'DEPOSIT'
      and state = 'CREDITED'`,
  )
  assert.equal(credited?.total, String(100_000_000n * BigInt(COUNT)))
  assert.equal(
    (await fixture.database.query(`select 1 from events where type = 'invoice.paid'`)).length,
    COUNT,
  )
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { encodeKey, readKey } from '../../../../../devnet/src/stellar/strkey.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { audit } from '../../../server/audit/audit.ts'
import { contractPayments } from '../../assets/contract-payments.ts'

/** Tests of XLM that contracts pay, on the local chain, which encodes its events with another library. */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-stellar-contracts-'))
const XLM = {
  code: 'XLM',
  to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  held: '500',
  amount: '2',
}
const STROOPS = 10_000_000n
let devnet: Devnet

/** Returns the muxed address of an account with an id (SEP-23). */
function muxed(address: string, id: bigint): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(id)
  return encodeKey('M', Buffer.concat([readKey(address)?.key ?? Buffer.alloc(0), bytes]))
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

test('credits XLM that a contract pays, with its contract as sender, and a transfer spends it', async () => {
  const fixture = new FamilyFixture(database.get(), devnet, XLM, clock)
  try {
    await fixture.open()
    const before = await fixture.available()
    const pay = (address: string, amount: string) =>
      fixture.control({ command: 'special', kind: 'contract', address, amount })
    await pay(fixture.source, '40')
    // The id of a muxed address is the tag: this one belongs to no wallet.
    await pay(muxed(fixture.source, 4242n), '7')
    await fixture.scan()
    await fixture.run()
    const deposits = await fixture.database.query<Record<string, unknown>>(
      `select d.amount::text amount, d.tag, t.status, left(d.sender, 1) sender,
         jsonb_array_length(d.senders) senders from deposits d
       join transactions t on t.id = d.transaction_id where left(d.sender, 1) = 'C' order by d.amount desc`,
    )
    assert.deepEqual(
      deposits.map(({ amount, tag, sender, senders }) => [amount, tag, sender, senders]),
      [
        [String(40n * STROOPS), null, 'C', 2],
        [String(7n * STROOPS), '4242', 'C', 2],
      ],
    )
    assert.equal(deposits[0]?.['status'], 'confirmed')
    assert.equal((await fixture.available()) - before, 40n * STROOPS)
    const id = await fixture.create('spends it', { amount: '538' })
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    assert.deepEqual((await audit(fixture.services)).differences, [])
    const shown = (await contractPayments(fixture.services))(fixture.asset)
    assert.equal(shown.contract_payments, 'credited')
  } finally {
    await fixture.close()
  }
})

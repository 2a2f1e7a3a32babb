import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Logger } from 'pino'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { Sanctions } from './ofac.ts'
import { useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of screening on Cardano. The owner of a payment credential can derive further addresses
 * from it at no cost, so screening must find a listed credential in every address form.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-aml-cardano-'))
let devnet: Devnet

/**
 * Test vectors of CIP-19: one payment key with two different stake parts and without one, and an
 * address of another party.
 */
const BASE =
  'addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae'
const SCRIPT_STAKE =
  'addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx'
const ENTERPRISE = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
const ANOTHER = 'addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr'
const BASE_MAINNET =
  'addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x'

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

function sanctionsOf(...addresses: string[]): Sanctions {
  const file = join(home, 'list.json')
  writeFileSync(
    file,
    JSON.stringify({
      source: 'test',
      published: '2026-01-01',
      addresses: addresses.map((address) => ({ asset: 'ADA', address })),
    }),
  )
  return new Sanctions(() => file, {
    info: () => undefined,
    error: () => undefined,
  } as unknown as Logger)
}

test('holds a transfer if OFAC’s list or the frozen list contains any form of its destination', async () => {
  const fixture = new FamilyFixture(
    database.get(),
    devnet,
    { code: 'ADA', to: ENTERPRISE, held: '300', amount: '5' },
    clock,
  )
  try {
    await fixture.open()
    const aml = (sanctions: unknown) =>
      Object.assign(fixture.services, { aml: { providers: {}, sanctions } })
    aml(sanctionsOf(BASE_MAINNET))
    await fixture.runTo(await fixture.create('enterprise'), 'AML_HELD')
    const spelled = await fixture.create('upper case', {
      destination_address: SCRIPT_STAKE.toUpperCase(),
    })
    await fixture.runTo(spelled, 'AML_HELD')
    // The sanctions list no longer contains the address, but the sub-account's list of frozen
    // addresses does.
    aml({ has: () => false })
    await fixture.runTo(await fixture.create('base', { destination_address: BASE }), 'AML_HELD')
    assert.deepEqual(await fixture.database.query('select address, source from frozen_addresses'), [
      { address: ENTERPRISE, source: 'OFAC' },
    ])
    const other = await fixture.create('another party', { destination_address: ANOTHER })
    await fixture.runTo(other, 'CONFIRMED')
  } finally {
    await fixture.close()
  }
})

test('queries the provider for each form of a Cardano sender, and freezes every form if flagged', async () => {
  const fixture = new DepositFixture(database.get(), 'cardano')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  await fixture.screenDeposits(alice)
  const pay = (txid: string, ...addresses: string[]) => {
    fixture.chain.paidBy.set(txid, { addresses, complete: true })
    fixture.chain.mine({
      txid,
      outcome: [{ position: 0, asset: fixture.assets[0], address: alice.deposit, amount: 7n }],
    })
    fixture.chain.bury()
    return fixture.settle()
  }
  fixture.risks.set(SCRIPT_STAKE, 'SEVERE')
  await pay('first', ENTERPRISE, SCRIPT_STAKE)
  assert.deepEqual(
    [(await fixture.deposits()).map(({ state }) => state), fixture.requests.toSorted()],
    [['FROZEN'], [ENTERPRISE, SCRIPT_STAKE].toSorted()],
  )
  fixture.risks.clear()
  await pay('second', BASE)
  await pay('third', ANOTHER)
  const states = (await fixture.deposits()).map(({ state }) => state)
  assert.deepEqual([states.filter((state) => state === 'FROZEN').length, states.length], [2, 3])
})

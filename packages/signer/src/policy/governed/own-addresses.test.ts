import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { addressAt, CHANGE_INDEX, type Network } from '@custody/chains'
import { Account, MuxedAccount } from '@stellar/stellar-base'
import { announceAddresses } from '../../api/addresses.ts'
import { addressOf, Bench, KEYS, said, WORKSPACE } from '../../../testing/judging.ts'
import { registry } from '../../../testing/signer-cluster.ts'
import { HANG_MS } from '../../../../../testing/wait-for.ts'
import { OwnAddresses } from './own-addresses.ts'

const networkOf = (code: string) => registry.network(code) as Network
const [BTC, XLM] = [networkOf('BTC'), networkOf('XLM')]
const pathOf = (network: Network, sub: number, index = 0) => [sub, network.chain_index, index]
let bench: Bench
let own: OwnAddresses
const benches: Bench[] = []
beforeEach(() => {
  bench = new Bench()
  benches.push(bench)
  bench.caller(1)
  const { store, keyOf } = bench.context
  own = new OwnAddresses({ registry, store, keyOf, log: () => {} }, { deposits: 3 })
})
after(() => {
  for (const each of benches) each.close()
})

/** Returns the owner once the set is complete. */
async function ownerOf(
  network: Network,
  address: string,
): Promise<ReturnType<OwnAddresses['ownerOf']>> {
  await own.ready(WORKSPACE, network.code, HANG_MS)
  return own.ownerOf(WORKSPACE, network.code, address)
}

test('an address is undecided until the own addresses are derived, then own or foreign', async () => {
  const foreign = addressOf(BTC, pathOf(BTC, 7))
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', foreign), undefined)
  assert.equal(await ownerOf(BTC, foreign), null)
  for (const index of [0, 1, 2, CHANGE_INDEX])
    assert.equal(own.ownerOf(WORKSPACE, 'BTC', addressOf(BTC, pathOf(BTC, 1, index))), 1)
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', addressOf(BTC, pathOf(BTC, 0))), 0, 'the gas tank')
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', addressOf(BTC, pathOf(BTC, 1, 3))), null)
  assert.equal(own.ownerOf('another', 'BTC', foreign), undefined)
  await own.ready('another', 'BTC', HANG_MS)
})

test('a new sub-account and an announced address make the set incomplete until they are derived', async () => {
  const [later, deep] = [addressOf(BTC, pathOf(BTC, 2)), addressOf(BTC, pathOf(BTC, 1, 120))]
  assert.equal(await ownerOf(BTC, later), null)
  bench.caller(2)
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', deep), undefined)
  assert.equal(await ownerOf(BTC, later), 2)
  const announce = (fields: object) =>
    announceAddresses(bench.context, {
      workspace: WORKSPACE,
      network: 'BTC',
      sub_account: 1,
      below: 121,
      ...fields,
    })
  assert.deepEqual(announce({}), { below: 121 })
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', deep), undefined)
  // An address that is known to be own is decided at any time.
  assert.equal(own.ownerOf(WORKSPACE, 'BTC', later), 2)
  assert.equal(await ownerOf(BTC, deep), 1)
})

test('an address is own in every form from which the same key can spend', async () => {
  const account = addressOf(XLM, pathOf(XLM, 1))
  const muxed = new MuxedAccount(new Account(account, '0'), '7').accountId()
  assert.equal(await ownerOf(XLM, muxed), 1)
  const ADA = networkOf('ADA')
  assert.equal(await ownerOf(ADA, addressAt(ADA, KEYS.ed25519, pathOf(ADA, 1))), 1)
})

test('announcements only rise, are limited for a day, and name a known sub-account', () => {
  const announce = (fields: object = {}) =>
    said(() =>
      announceAddresses(bench.context, {
        workspace: WORKSPACE,
        network: 'BTC',
        sub_account: 1,
        below: 200,
        ...fields,
      }),
    )
  const { addressMarks } = bench.store.state
  const mark = () => addressMarks.get(WORKSPACE, 'BTC', 1)
  assert.equal(mark(), 100)
  assert.equal(announce(), null)
  const { height } = bench.store.record
  assert.equal(announce({ below: 150 }), null)
  assert.deepEqual([mark(), bench.store.record.height], [200, height], 'nothing is recorded')
  assert.match(announce({ sub_account: 9 })!, /^NOT_ENROLLED: /)
  assert.match(announce({ network: 'XYZ' })!, /^NETWORK_MISMATCH: /)
  assert.match(announce({ below: 10_101 })!, /^BUDGET: below: must be at most 10100 today/)
  assert.equal(announce({ below: 10_100 }), null)
  assert.match(announce({ below: 10_101 })!, /^BUDGET: /)
  bench.now += 86_400
  assert.equal(announce({ below: 20_100 }), null)
  assert.match(announce({ below: 20_101 })!, /^BUDGET: /)
})

test('waits for the derivation for at most the given time', async () => {
  const { store } = bench.context
  const keyOf = () => new Promise<never>(() => {})
  const endless = new OwnAddresses({ registry, store, keyOf, log: () => {} })
  await endless.ready(WORKSPACE, 'BTC', 1)
  assert.equal(endless.ownerOf(WORKSPACE, 'BTC', addressOf(BTC, pathOf(BTC, 7))), undefined)
})

test('of a workspace with too many addresses, the others stay undecided, and one error is logged', async () => {
  const { store, keyOf } = bench.context
  const logged: string[] = []
  const log = (_level: string, message: string) => void logged.push(message)
  const few = new OwnAddresses({ registry, store, keyOf, log }, { deposits: 3, addresses: 4 })
  const foreign = addressOf(BTC, pathOf(BTC, 7))
  for (let at = 0; at < 3; at++) {
    await few.ready(WORKSPACE, 'BTC', HANG_MS)
    assert.equal(few.ownerOf(WORKSPACE, 'BTC', foreign), 'unknown')
  }
  assert.equal(few.ownerOf(WORKSPACE, 'BTC', addressOf(BTC, pathOf(BTC, 1))), 1)
  assert.equal(logged.length, 1)
})

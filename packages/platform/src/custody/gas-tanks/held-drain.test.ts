import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { NodeUnavailable } from '../../core/signing/nodes.ts'
import { drainTank } from '../../server/operator/gas-tanks/gas-tanks.ts'

/** A drain of a gas tank that the policy of the workspace does not allow now. */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-drain-'))
const TO = '0x00000000000000000000000000000000000000AA'
const ETH = { code: 'ETH', to: TO, held: '5', amount: '1' }
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

test('a drain whose approvals are missing is not started, although a node is down', async () => {
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await fixture.open()
    await fixture.create('first')
    await fixture.run()
    const order = 'order-1'
    const { call } = fixture.nodes
    const lacking = new Set<number>()
    fixture.nodes.call = async (node, method, path, body) => {
      if (path !== '/policy') return call.call(fixture.nodes, node, method, path, body)
      if (node === 1) throw new NodeUnavailable(node, 'is away')
      return { orders: lacking.has(node) ? [{ order }] : [] }
    }
    const typed = { workspace: 'acme', network: 'ETH', to: TO, order }
    const refused = /--order: the policy of acme requires approvals of the order order-1/
    // With node 1 down, both others must have them.
    for (const nodes of [[2], [2, 3]]) {
      lacking.clear()
      for (const node of nodes) lacking.add(node)
      await assert.rejects(drainTank(fixture.services, typed), refused)
    }
    const drains = `select 1 from transactions where kind = 'DRAIN'`
    assert.equal(await fixture.database.one(drains), undefined)
    await fixture.check()
    lacking.clear()
    fixture.nodes.enterDrain({ workspace: 'acme', network: 'ETH', order, to_address: TO })
    const started = await drainTank(fixture.services, typed)
    await fixture.run()
    assert.equal((await fixture.read(String(started['id']))).state, 'CONFIRMED')
  } finally {
    await fixture.close()
  }
})

test('a drain that the nodes hold ends, returns the balance to the tank, and does not block its nonce', async () => {
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await fixture.open()
    // A transfer fills the tank, and its fuel uses the first nonce.
    const first = await fixture.create('first')
    await fixture.run()
    assert.equal((await fixture.read(first)).state, 'CONFIRMED')
    let isHeld = true
    fixture.nodes.fault = ({ purpose }) => (isHeld && purpose.kind === 'drain' ? 'full' : undefined)
    const typed = { workspace: 'acme', network: 'ETH', to: TO, order: 'order-1' }
    const { to: to_address, ...named } = typed
    fixture.nodes.enterDrain({ ...named, to_address })
    const held = await drainTank(fixture.services, typed)
    await fixture.runTo(String(held['id']), 'FAILED')
    const { failure_reason: reason } = await fixture.read(String(held['id']))
    assert.match(String(reason), /POLICY_WINDOW/)
    // Fuel of a later transfer uses the nonce that the drain has given back.
    const later = await fixture.create('later')
    await fixture.run()
    assert.equal((await fixture.read(later)).state, 'CONFIRMED')
    isHeld = false
    const again = await drainTank(fixture.services, typed)
    await fixture.run()
    assert.equal((await fixture.read(String(again['id']))).state, 'CONFIRMED')
    await fixture.check()
  } finally {
    await fixture.close()
  }
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { callerPem, House, type Json } from './house.ts'

/** Rule 1: a sub-account's name and index are bound by all three nodes, unique both ways, for ever. */
let house: House
before(async () => { house = await House.start(undefined, 'prepared', 'apart') })
after(async () => { await house.stop() })

const enrolment = (workspace: string, sub_account: string, more: Record<string, unknown> = {}) => ({ api_key: randomUUID(), public_key_pem: callerPem, role: 'full', workspace, sub_account, ...more })

test('the nodes alone choose the index: all three answer the same one, and names of one workspace never share it', async () => {
  const indexes = new Map<string, number>()
  for (const name of ['treasury', 'payouts', 'treasury', 'käse und brot']) {
    const answers = await house.everywhere('enrol', enrolment('acme', name))
    assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200], JSON.stringify(answers))
    const [index, ...others] = answers.map(({ body }) => body.sub_account_index as number)
    assert.deepEqual(others, [index, index])
    assert.equal(indexes.get(name) ?? index, index)
    indexes.set(name, index!)
    assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body.identities))).size, 1, 'all pin the same identities')
  }
  assert.equal(new Set(indexes.values()).size, 3)
  // Another workspace counts by itself.
  assert.equal((await house.operator(1, 'enrol', enrolment('other', 'treasury'))).body.sub_account_index, 1)
})

test('attack: a stranger under the index of the treasury, by the operator’s own hand at one node', async () => {
  const [{ body }] = await house.everywhere('enrol', enrolment('bank', 'treasury')) as [Json, Json, Json]
  const stranger = enrolment('bank', 'stranger', { index: body.sub_account_index })
  for (const node of [1, 2, 3]) {
    const refused = await house.operator(node, 'enrol', stranger)
    assert.equal(refused.body.error, 'ENROLMENT_CONFLICT', JSON.stringify(refused.body))
  }
  const moved = await house.operator(2, 'enrol', enrolment('bank', 'treasury', { index: body.sub_account_index + 5 }))
  assert.equal(moved.body.error, 'ENROLMENT_CONFLICT')
})

test('a new sub-account needs all three nodes; a known one does not', async () => {
  await house.everywhere('enrol', enrolment('late', 'known'))
  await house.kill(3)
  const refused = await house.operator(2, 'enrol', enrolment('late', 'new'))
  assert.equal(refused.status, 503)
  assert.match(refused.body.message, /all three nodes must be up/)
  const { status, body } = await house.operator(2, 'enrol', enrolment('late', 'known'))
  assert.deepEqual([status, body.new], [200, true])
  await house.run(3)
  for (const node of [1, 2, 3]) assert.equal((await house.operator(node, 'enrol', enrolment('late', 'new'))).status, 200)
})

test('a revocation is remembered by a node that was away when the key was enrolled', async () => {
  await house.everywhere('enrol', enrolment('gone', 'main'))
  const key = enrolment('gone', 'main')
  assert.equal((await house.operator(1, 'enrol', key)).status, 200)
  const [first, second] = await house.everywhere('revoke', { api_key: key.api_key })
  assert.deepEqual([first!.body.known, second!.body.known], [true, false])
  assert.deepEqual([first!.body.workspace, first!.body.sub_account, first!.body.role], ['gone', 'main', 'full'])
  await house.restart(2)
  for (const node of [1, 2, 3]) assert.equal((await house.operator(node, 'enrol', key)).body.error, 'ENROLMENT_CONFLICT')
})

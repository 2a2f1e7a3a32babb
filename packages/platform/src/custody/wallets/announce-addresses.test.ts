// Announcements of deposit addresses to the signer nodes, with real PostgreSQL and real nodes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { callerPem } from '../../../../signer/testing/signer-cluster.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { InProcessNodes } from '../../../testing/in-process-nodes.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { NodeUnavailable } from '../../core/signing/nodes.ts'
import { announceAddressesLoop } from './announce-addresses.ts'

const clock = new ManualClock()
const database = useDatabase({ clock })
const nodes = new InProcessNodes(3, () => clock.now())
after(() => nodes.close())

test('announces addresses beyond the first hundred once, and again after a node was away', async () => {
  await database.started
  nodes.enrol({
    api_key: 'key',
    public_key_pem: callerPem,
    role: 'full',
    workspace: 'acme',
    sub_account: 1,
  })
  const db = database.get()
  const one = async (sql: string, values: unknown[]) =>
    (await db.one<{ id: string }>(sql, values))?.id
  const workspace = await one("insert into workspaces (name) values ('acme') returning id", [])
  const sub = await one(
    "insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1) returning id",
    [workspace],
  )
  const address = (index: number) =>
    db.query(
      `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
       values ('ETH', $1, $2, $3, $4, 'deposit')`,
      [`0x${index}`, workspace, sub, index],
    )
  const calls: unknown[] = []
  let away = 0
  const loop = announceAddressesLoop({
    database: db,
    registry: loadRegistry('local'),
    log: { warn: (fields: unknown) => void calls.push(fields) } as never,
    signers: {
      peers: nodes.signers.peers,
      call: async (node: number, method: string, path: string, body: unknown) => {
        if (node === away) throw new NodeUnavailable(node, 'away')
        calls.push([node, await nodes.call(node, method, path, body)])
      },
    } as never,
  })
  const announced = async () => {
    calls.length = 0
    await loop.run(new AbortController().signal)
    return calls
  }
  await address(0x7fffffff)
  await address(99)
  assert.deepEqual(await announced(), [])
  await address(100)
  away = 2
  assert.deepEqual(await announced(), [
    [1, { below: 300 }],
    [3, { below: 300 }],
  ])
  away = 0
  assert.deepEqual(await announced(), [[2, { below: 300 }]])
  assert.deepEqual(await announced(), [])
  // A platform that was started again announces the same.
  await address(299)
  assert.deepEqual(await announced(), [])
  await address(300)
  assert.deepEqual(
    (await announced()).map((call) => (call as [number, unknown])[1]),
    [1, 2, 3].map(() => ({ below: 500 })),
  )
})

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { report } from '../../../testing/figures.ts'
import { call, TestPlatform, type User } from '../testing/harness.ts'

/**
 * Measures deliveries per second of one workspace's webhook, alone and while another workspace's
 * receivers accept connections and never respond, as a ratio. Floor: 0.95. Both rates are measured
 * in the same run, alternately; the better of a few counts.
 */

const EVENTS = 600
const HANGING = 5
const ROUNDS = 5
const FLOOR = 0.95

const listen = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
let count = 0
let onDelivery: () => void = () => undefined
const receiver = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(204).end()
    count++
    onDelivery()
  })
})
let hanging = 0
const silent = createServer((request) => {
  hanging++
  request.resume()
})

const platform = new TestPlatform()
const hook = async (user: User, url: string) => {
  const answer = await call<{ id: string }>(user, 'POST', '/dac/v1/webhooks', {
    url,
    events: ['wallet.updated'],
  })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body.id
}
/** Emits many events of a workspace at once, each of a separate object. */
const emit = (workspace: string, events: number) =>
  platform.database.query(
    `insert into events (workspace_id, sub_account_id, type, payload)
   select w.id, s.id, 'wallet.updated', jsonb_build_object('id', gen_random_uuid(), 'asset', 'ETH',
     'status', 'active', 'updated_at', $3::text)
   from workspaces w join sub_accounts s on s.workspace_id = w.id, generate_series(1, $2)
     where w.name = $1`,
    [workspace, events, new Date(0).toISOString()],
  )

/** Returns deliveries per second, from the first arrival to the last. */
async function rate(workspace: string): Promise<number> {
  count = 0
  await emit(workspace, EVENTS)
  while (count === 0)
    await new Promise<void>((resolve) => {
      onDelivery = resolve
    })
  const [from, before] = [performance.now(), count]
  while (count < EVENTS)
    await new Promise<void>((resolve) => {
      onDelivery = resolve
    })
  return ((EVENTS - before) * 1000) / (performance.now() - from)
}

try {
  const [good, bad] = await Promise.all([listen(receiver), listen(silent)])
  await platform.start()
  const [alice, mallory] = [await platform.user('alice'), await platform.user('mallory')]
  await hook(alice, good)
  await rate('alice')
  const alone: number[] = []
  const beside: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    alone.push(await rate('alice'))
    const hooks: string[] = []
    for (let n = 0; n < HANGING; n++) hooks.push(await hook(mallory, `${bad}${randomUUID()}`))
    hanging = 0
    await emit('mallory', EVENTS)
    while (hanging < HANGING) await new Promise((resolve) => setTimeout(resolve, 20))
    beside.push(await rate('alice'))
    for (const id of hooks) await call(mallory, 'DELETE', `/dac/v1/webhooks/${id}`, {})
    // Deliveries without a response occupy their slots until then.
    silent.closeAllConnections()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  const [without, with_] = [Math.max(...alone), Math.max(...beside)]
  report({
    name: `deliveries beside ${HANGING} receivers that hang`,
    unit: '/s',
    value: with_,
    floor: without,
    target: { atLeast: FLOOR },
  })
} finally {
  receiver.closeAllConnections()
  silent.closeAllConnections()
  receiver.close()
  silent.close()
  await platform.remove()
}

// Stops, their ends, vetoes and suspensions over the API, with real PostgreSQL and three nodes with
// the real rules of governance.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { statementHash, type Statement } from '@custody/policy'
import { allow, keyOf, policyWith } from '../../../../../policy/testing/documents.ts'
import { signWith } from '../../../../../policy/testing/statements.ts'
import { testEmittedEvents } from '../../../../testing/event-assertions.ts'
import { GovernedNodes } from '../../../../testing/governed-nodes.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { ApiError } from '../../../core/errors.ts'
import { readBody } from '../../../core/http/validate.ts'
import { readPolicyStop } from './read-stop.ts'
import { resumePolicy } from './resume-policy.ts'
import { stopPolicy } from './stop-policy.ts'
import { policyStopsLoop } from './stops.ts'
import { suspendPolicyKey } from './suspend-key.ts'
import { vetoPolicy } from './veto-policy.ts'

const clock = new ManualClock()
const database = useDatabase({ clock })
const registry = loadRegistry('local')
const RULE = { ...allow('pay'), match: { action: ['transfer'], assets: ['ETH'], to: 'any' } }
const FIRST = policyWith([RULE], { mode: 'local' })
const nowS = () => Math.floor(clock.now() / 1000)
const governed = new GovernedNodes(nowS)
// oxlint-disable-next-line typescript/no-explicit-any -- the handlers are called without a server
type Any = any

const services = () => ({ database: database.get(), registry, signers: governed.signers })
let caller: Any

async function addCaller(name: string): Promise<Any> {
  const row = await database
    .get()
    .one<{ id: string }>('insert into workspaces (name) values ($1) returning id', [name])
  await database
    .get()
    .query("insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)", [
      row?.id,
    ])
  return { workspace: name, workspaceId: row?.id, subAccountId: randomUUID(), apiKey: 'key' }
}

beforeEach(async () => {
  await database.started
  // The rows of earlier tests stay, because the last test reads all events.
  await database.get().query('update workspaces set name = $1 || id::text', ['earlier-'])
  await database.get().query("update policy_stops set state = 'ended'")
  governed.begin(FIRST.document)
  caller = await addCaller('acme')
})

const fails = (code: string, field?: string) => (error: unknown) =>
  error instanceof ApiError && error.code === code && error.field === field

/** Signs a statement as a person, and returns the body of its request and its hash. */
function signed(kind: Statement['kind'], by: string, fields: object, more: object = {}) {
  const { mode, workspace, nodes } = FIRST.document
  const times = { at: nowS(), expires: nowS() + 3600 }
  const common = { v: 1, mode, workspace, nodes, by, key: 'k1', ...times }
  const statement = { kind, ...common, ...fields } as Statement
  const { signature } = signWith(keyOf(by), statement)
  return { body: { by, key: 'k1', ...times, signature, ...more }, hash: statementHash(statement) }
}
const POLICY = { number: FIRST.document.number, hash: FIRST.hash }
const stopOf = (by: string, sub_account: string | null = null) => {
  const fields = { sub_account, reason: 'A laptop was stolen' }
  return signed('stop', by, fields, fields)
}
const resumeOf = (by: string, stop: string) =>
  signed('resume', by, { policy: POLICY, stop }, { stop }).body
/** Calls an endpoint with a body as the server reads it. */
const send = async (
  { handler, body: schema }: { handler: Any; body?: Any },
  body: object,
  by: Any = caller,
): Promise<Any> => {
  const read = readBody(schema, JSON.stringify(body))
  return (await handler({ caller: by, body: read }, services())).body
}
const stops = () => governed.nodes.map(({ governance }) => governance.stops.map(({ hash }) => hash))
const tick = () => policyStopsLoop(services()).run(new AbortController().signal)

test('a stop is in force at the nodes, and ends with the approvals that the policy requires', async () => {
  const { body, hash } = stopOf('bob')
  const stopped = await send(stopPolicy, body)
  assert.deepEqual(stopped, { hash, sub_account: null, stopped: [1, 2, 3] })
  assert.deepEqual(stops(), [[hash], [hash], [hash]])
  assert.deepEqual(await send(stopPolicy, body), stopped, 'the same stop changes nothing')
  const first = await send(resumePolicy, resumeOf('alice', hash))
  assert.deepEqual(
    [first.state, first.needs, first.resumed],
    ['stopped', [{ group: 'admins', k: 2, have: 1 }], []],
  )
  const read = (of: string): Promise<Any> =>
    readPolicyStop.handler({ caller, params: { hash: of } } as Any, services()) as Any
  const { body: shown } = await read(hash)
  assert.deepEqual(
    [shown.is_in_force, shown.by, shown.reason, shown.needs],
    [true, 'bob', 'A laptop was stolen', first.needs],
  )
  assert.equal(statementHash(JSON.parse(shown.signed).statement), hash)
  await assert.rejects(read('ab'.repeat(32)), fails('NOT_FOUND', 'hash'))
  const last = await send(resumePolicy, resumeOf('bob', hash))
  assert.deepEqual([last.state, last.resumed], ['resumed', [1, 2, 3]])
  assert.deepEqual(stops(), [[], [], []])
  await assert.rejects(
    send(resumePolicy, resumeOf('carol', hash)),
    fails('APPROVAL_CLOSED', 'stop'),
  )
})

test('a stop and its end that were stored before a crash are presented by the background job', async () => {
  const { body, hash } = stopOf('bob', 'main')
  governed.isCut = true
  await assert.rejects(send(stopPolicy, body), fails('SIGNERS_UNAVAILABLE'))
  await tick()
  assert.deepEqual(stops(), [[], [], []])
  governed.isCut = false
  await tick()
  assert.deepEqual(stops(), [[hash], [hash], [hash]])
  await send(resumePolicy, resumeOf('alice', hash))
  governed.isCut = true
  await assert.rejects(send(resumePolicy, resumeOf('bob', hash)), fails('SIGNERS_UNAVAILABLE'))
  governed.isCut = false
  await tick()
  assert.deepEqual(stops(), [[], [], []])
})

test('approvals of an end that have expired do not keep later ones from ending the stop', async () => {
  const { body, hash } = stopOf('bob')
  await send(stopPolicy, body)
  await send(resumePolicy, resumeOf('alice', hash))
  clock.advance(3_700_000)
  const second = await send(resumePolicy, resumeOf('bob', hash))
  assert.deepEqual(
    [second.state, second.needs],
    ['stopped', [{ group: 'admins', k: 2, have: 1 }]],
    'the approval of alice has expired',
  )
  const third = await send(resumePolicy, resumeOf('carol', hash))
  assert.deepEqual([third.state, third.resumed], ['resumed', [1, 2, 3]])
  assert.deepEqual(stops(), [[], [], []])
})

test('an end whose approvals expired before a node got it leaves the stop in force', async () => {
  const { body, hash } = stopOf('bob')
  await send(stopPolicy, body)
  await send(resumePolicy, resumeOf('alice', hash))
  governed.isCut = true
  await assert.rejects(send(resumePolicy, resumeOf('bob', hash)), fails('SIGNERS_UNAVAILABLE'))
  clock.advance(3_700_000)
  governed.isCut = false
  await tick()
  assert.deepEqual(stops(), [[hash], [hash], [hash]])
  await send(resumePolicy, resumeOf('alice', hash))
  await send(resumePolicy, resumeOf('carol', hash))
  assert.deepEqual(stops(), [[], [], []])
})

test('a veto ends a change at the nodes, and a suspension blocks a key', async () => {
  const hash = 'cd'.repeat(32)
  const next = { number: 2, hash }
  const veto = signed('veto', 'alice', { policy: POLICY, next }, { hash }).body
  assert.deepEqual(await send(vetoPolicy, veto), { hash, vetoed: [1, 2, 3] })
  assert.deepEqual(governed.nodes[0]?.governance.vetoed.get(hash), ['alice'])

  const fields = { target: { person: 'carol', key: 'k1' }, reason: 'The laptop is lost' }
  const suspension = signed('suspend', 'bob', fields, fields)
  const { suspended } = await send(suspendPolicyKey, suspension.body)
  assert.deepEqual(suspended, [1, 2, 3])
  const { body, hash: stop } = stopOf('carol')
  await send(stopPolicy, body)
  await assert.rejects(
    send(resumePolicy, resumeOf('carol', stop)),
    fails('APPROVAL_REFUSED', 'key'),
  )
  // The nodes refuse what the platform cannot see, and their reason is returned.
  const again = { ...fields, target: { person: 'alice', key: 'k1' } }
  await assert.rejects(
    send(suspendPolicyKey, signed('suspend', 'bob', again, again).body),
    (error: unknown) => {
      assert.ok(error instanceof ApiError)
      assert.match(error.message, /^signature: signer 1: NOT_ALLOWED: .*already has a suspension/)
      return true
    },
  )
})

test('statements that do not count are refused and store nothing', async () => {
  const { body, hash } = stopOf('bob')
  await assert.rejects(
    send(stopPolicy, { ...body, reason: 'another' }),
    fails('APPROVAL_REFUSED', 'signature'),
  )
  await assert.rejects(send(stopPolicy, stopOf('dan').body), fails('APPROVAL_REFUSED', 'by'))
  // A stop of a misspelt name would stop nothing.
  await assert.rejects(
    send(stopPolicy, stopOf('bob', 'mian').body),
    fails('INVALID_REQUEST', 'sub_account'),
  )
  await assert.rejects(
    send(stopPolicy, { ...body, at: body.at + 999, expires: body.expires + 999 }),
    fails('APPROVAL_REFUSED', 'at'),
  )
  await assert.rejects(send(resumePolicy, resumeOf('alice', hash)), fails('NOT_FOUND', 'stop'))
  assert.deepEqual(stops(), [[], [], []])
  await send(stopPolicy, body)
  const other = await addCaller('other')
  await assert.rejects(
    send(resumePolicy, resumeOf('alice', hash), other),
    fails('NOT_FOUND', 'stop'),
  )
})

testEmittedEvents(database.get, ['policy.stopped', 'policy.resumed'])

// The policy of a workspace over the API and by command: it is read, evaluated, simulated, compared
// and drafted. The nodes are real.
import assert from 'node:assert/strict'
import { createPublicKey, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
const PEOPLE = ['person-1', 'person-2', 'person-3']
const SINK = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
// oxlint-disable-next-line typescript/no-explicit-any -- the tests read documents of any shape
type Json = any
let user: User
let paid: string

async function run(
  ...words: string[]
): Promise<{ status: number | null; result: Json; stderr: string }> {
  const { status, stdout, stderr } = await platform.cli(...words, '--json')
  const last = stdout.trim().split('\n').at(-1) as string
  return { status, result: last === '' ? {} : (JSON.parse(last) as Json), stderr }
}
async function result(...words: string[]): Promise<Json> {
  const { status, result: value, stderr } = await run(...words)
  assert.equal(status, 0, `${words.join(' ')}\n${JSON.stringify(value)}${stderr}`)
  return value
}
const keyFile = (name: string): string => join(platform.home, `${name}.pem`)
const keyEntry = (name: string) => ({
  id: 'k1',
  kind: 'key',
  alg: 'Ed25519',
  spki: createPublicKey(readFileSync(`${keyFile(name)}.pub`, 'utf8'))
    .export({ type: 'spki', format: 'der' })
    .toString('base64'),
})
const write = (name: string, value: unknown): string => {
  const path = join(platform.home, name)
  writeFileSync(path, JSON.stringify(value))
  return path
}
const get = async (path: string): Promise<Json> => {
  const { status, body } = await call<Json>(user, 'GET', path)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const post = (path: string, body: unknown) => call<Json>(user, 'POST', path, body)
const send = (amount: string) =>
  call<Transfer & { code?: string }>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('ETH', amount, SINK),
  )
const bodyOf = (asset: string, amount: string, to: string, more: Record<string, unknown> = {}) =>
  JSON.parse(transferBody(asset, amount, to, more)) as Json
const evaluate = (amount: string, more: object = {}) =>
  post('/dac/v1/policy/evaluate', {
    method: 'POST',
    uri: '/dac/v1/transaction',
    body: bodyOf('ETH', amount, SINK),
    ...more,
  })

before(async () => {
  await platform.start()
  user = await platform.user('ruled')
  await fundedWallet(platform, user, 'ETH', '50')
})
after(() => platform.remove())

test('a workspace without a policy has none', async () => {
  const { number, hash, document, held, pending, stops } = await get('/dac/v1/policy')
  assert.deepEqual([number, hash, document], [null, null, null])
  assert.deepEqual([held, pending, stops], [[], [], []])
  assert.deepEqual(await get('/dac/v1/policy/versions'), { data: [], next: null, has_more: false })
  const { status, body } = await evaluate('1')
  assert.deepEqual([status, body.effect, body.policy], [200, 'none', null])
  assert.equal(body.by.length, 2)
})

test('a draft is refused until its keys are filled in, and then allows the history', async () => {
  const sent = await send('0.4')
  assert.equal(sent.status, 200, JSON.stringify(sent.body))
  paid = sent.body.id
  await assertConfirmed(user, paid)
  const { document, transfers, fill_in } = await result('policy', 'draft', '--workspace', 'ruled')
  assert.deepEqual([transfers, fill_in.length], [1, 3])
  assert.equal(document.rules[0].amount.max.ETH, '0.4')
  const draft = write('draft.json', document)
  const refused = await run('policy', 'check', draft)
  assert.equal(refused.status, 1)
  assert.match(refused.result.findings[0].path, /^people\[0\]\.keys\[0\]\.spki/)

  for (const [at, name] of PEOPLE.entries()) {
    await result('keygen', '--type', 'ed25519', '--out', keyFile(name))
    document.people[at].keys[0].spki = keyEntry(name).spki
  }
  const file = write('policy.json', document)
  const simulated = await result('policy', 'simulate', file, '--workspace', 'ruled')
  assert.deepEqual(simulated, {
    same: 1,
    newly_denied: [],
    newly_approval: [],
    newly_allowed: [],
    unused_rules: ['large'],
    judged: 1,
    forwards: 0,
    stopped: [],
  })
  for (const name of PEOPLE)
    await result('policy', 'sign', file, '--as', name, '--key', keyFile(name))
  const { held } = await result('policy', 'install', '--workspace', 'ruled', '--file', file)
  assert.ok(held.length >= 2)
})

test('the API returns the document in force, its history, and what it decides', async () => {
  const policy = await get('/dac/v1/policy')
  assert.deepEqual([policy.document.workspace, policy.pending, policy.stops], ['ruled', [], []])
  assert.ok(policy.held.length >= 2)
  const { data, has_more } = await get('/dac/v1/policy/versions?limit=1')
  assert.deepEqual([data.length, has_more, data[0].hash], [1, false, policy.hash])
  assert.deepEqual(data[0].document, policy.document)
  assert.deepEqual(
    data[0].signed_by,
    PEOPLE.map((person) => ({ person, key: 'k1', at: null })),
  )

  const { body: allowed } = await evaluate('0.3')
  assert.deepEqual([allowed.effect, allowed.via, allowed.refusal], ['allow', 'usual', null])
  assert.equal(allowed.policy.hash, policy.hash)
  assert.ok(allowed.windows.some(({ rule, name }: Json) => rule === 'usual' && name === 'day'))
  const { body: large } = await evaluate('3')
  assert.deepEqual(
    [
      large.effect,
      large.via,
      large.needs.map(({ group }: Json) => group),
      Number(large.needs[0].k),
    ],
    ['approve', 'large', ['treasury'], 2],
  )
  const usual = large.tried.find(({ rule }: Json) => rule === 'usual')
  assert.deepEqual([usual.fits, usual.why], [false, 'amount: 3 ETH is above 0.4'])
  assert.equal((await get('/dac/v1/transactions')).data.length, 2, 'nothing was created')
})

test('an evaluation of another request or an invalid body fails with 400 that names the field', async () => {
  for (const [more, field] of [
    [{ uri: '/dac/v1/wallet' }, 'uri'],
    [{ uri: '/dac/v1/transaction?x=1' }, 'uri'],
    [{ method: 'GET' }, 'method'],
    [{ body: bodyOf('ETH', '0', SINK) }, 'body.amount'],
    [{ body: bodyOf('NONE', '1', SINK) }, 'body.asset'],
    [{ body: bodyOf('ETH', '1', 'nowhere') }, 'body.destination_address'],
    [{ body: bodyOf('ETH', '1', SINK, { adress_tag: '1' }) }, 'body.adress_tag'],
    [{ body: {} }, 'body.asset'],
    [{ uri: '/dav/v1/stake', body: { asset: 'TRX' } }, 'body.address'],
    [{ api_key: randomUUID() }, 'api_key'],
  ] as const) {
    const { status, body } = await evaluate('1', more)
    assert.deepEqual([status, body.field], [400, field], JSON.stringify(body))
    assert.match(body.message, new RegExp(`^${field.replace('.', '\\.')}: `))
  }
})

test('a stricter document is compared and simulated, over the API and by command', async () => {
  const { number, hash, document } = (await result(
    'policy',
    'show',
    '--workspace',
    'ruled',
  )) as Json
  const next = structuredClone(document)
  next.number = number + 1
  next.previous = hash
  next.rules[0].amount.max.ETH = '0.1'
  const file = write('next.json', next)
  const compared = await result('policy', 'diff', file)
  assert.deepEqual(
    compared.differences.map(({ path, tendency }: Json) => [path, tendency]),
    [['rules.usual', 'narrows']],
  )
  const wrong = await run('policy', 'diff', write('wrong.json', { ...next, number: 9 }))
  assert.equal(wrong.status, 1)
  assert.equal(wrong.result.findings[0].path, 'number')

  const simulated = await result('policy', 'simulate', file, '--workspace', 'ruled', '--last', '5')
  assert.deepEqual([simulated.newly_approval, simulated.same], [[paid], 0])
  const { status, body } = await post('/dac/v1/policy/simulate', { document: next, last: 5 })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body.newly_approval, [paid])
  for (const [fields, field] of [
    [{ document: { ...next, workspace: 'other' } }, 'document.workspace'],
    [{ document: { ...next, v: 2 } }, 'document.v'],
    [{ document: next, last: 0 }, 'last'],
    [{}, 'document'],
  ] as const) {
    const refused = await post('/dac/v1/policy/simulate', fields)
    assert.deepEqual(
      [refused.status, refused.body.field],
      [400, field],
      JSON.stringify(refused.body),
    )
  }
})

/** The document in force, with numbers as they are; the harness reads those of the API as texts. */
const inForce = (): Promise<Json> => result('policy', 'show', '--workspace', 'ruled')
const by = (name: string): string[] => ['--as', name, '--key', keyFile(name)]

test('a change is proposed and approved by command, listed by the API, and vetoed', async () => {
  const { number, hash, document } = await inForce()
  const next = { ...structuredClone(document), number: number + 1, previous: hash }
  next.rules[0].amount.max.ETH = '0.2'
  const file = write('proposed.json', next)
  const propose = ['policy', 'propose', '--workspace', 'ruled', '--file', file]
  const proposed = await result(...propose, '--comment', 'Lower the limit')
  assert.deepEqual([proposed.state, proposed.needs.map(({ have }: Json) => have)], ['open', [0]])
  assert.equal((await result(...propose)).id, proposed.id)
  const { id } = proposed
  const [listed] = (await get('/dac/v1/approvals')).data
  assert.deepEqual(
    [listed.id, listed.action, listed.change.comment],
    [id, 'policy_change', 'Lower the limit'],
  )
  assert.ok((await result('approvals')).changes.some((each: Json) => each.id === id))

  assert.equal((await result('approve', id, ...by('person-1'))).state, 'open')
  const held = await result('approve', id, ...by('person-2'))
  assert.equal(held.state, 'held')
  assert.ok(held.held.length >= 2)
  const { pending } = await get('/dac/v1/policy')
  assert.equal(pending[0].hash, proposed.hash)
  const detail = await get(`/dac/v1/policy/changes/${id}`)
  assert.deepEqual(
    [detail.state, detail.changes.map(({ path }: Json) => path), detail.have.length],
    ['held', ['rules.usual'], 2],
  )
  assert.equal((await result('approve', id, ...by('person-3'), '--reject')).state, 'vetoed')
  assert.deepEqual((await get('/dac/v1/policy')).pending, [])
})

test('invalid changes fail with 400 that names the field, and create nothing', async () => {
  const { document } = await inForce()
  const before = (await get('/dac/v1/policy/changes')).data.length
  for (const [fields, field] of [
    [{ document, comment: 'why' }, 'document.number'],
    [{ document: {}, comment: 'why' }, 'document.kind'],
    [{ document, comment: '' }, 'comment'],
    [{ comment: 'why' }, 'document'],
    [{ document, comment: 'why', possessions: 'x' }, 'possessions'],
  ] as const) {
    const { status, body } = await post('/dac/v1/policy/changes', fields)
    assert.deepEqual([status, body.field], [400, field], JSON.stringify(body))
  }
  const missing = await call<Json>(user, 'GET', `/dac/v1/policy/changes/${randomUUID()}`)
  assert.deepEqual([missing.status, missing.body.field], [404, 'id'])
  assert.equal((await get('/dac/v1/policy/changes')).data.length, before)
})

test('a key that a change adds proves itself, and a platform that was killed presents the change', async () => {
  const { number, hash, document } = await inForce()
  await result('keygen', '--type', 'ed25519', '--out', keyFile('person-4'))
  const next = { ...structuredClone(document), number: number + 1, previous: hash }
  next.people.push({
    id: 'person-4',
    name: 'Fourth',
    api_keys: [],
    keys: [keyEntry('person-4')],
  })
  const created = await post('/dac/v1/policy/changes', {
    document: next,
    comment: 'A fourth person',
  })
  assert.equal(created.status, 200, JSON.stringify(created.body))
  const { id } = created.body
  assert.deepEqual(created.body.missing, [{ person: 'person-4', key: 'k1' }])
  for (const name of ['person-1', 'person-2']) await result('approve', id, ...by(name))
  await platform.kill()
  await platform.start()
  user = { ...user, base: platform.base }
  const proved = await result('approve', id, ...by('person-4'))
  assert.deepEqual([proved.state, proved.missing], ['held', []])
})

test('the API returns what counts in the windows of the policy', async () => {
  const before = await get('/dac/v1/policy/windows')
  const usedOf = ({ data }: Json): number =>
    Number(
      data
        .find(({ rule, window }: Json) => rule === 'usual' && window === 'day')
        ?.limits.find(({ asset }: Json) => asset === 'ETH')?.used ?? 0,
    )
  assert.equal(usedOf(before), 0, 'the payment before the policy does not count')
  const sent = await send('0.05')
  assert.equal(sent.status, 200, JSON.stringify(sent.body))
  await assertConfirmed(user, sent.body.id)
  const after = await get('/dac/v1/policy/windows')
  // The fee counts too, although a gas tank pays it.
  const used = usedOf(after)
  assert.ok(used > 0.05 && used < 0.06, String(used))
  assert.ok(after.by.length >= 2)
  assert.equal(after.policy.hash, (await get('/dac/v1/policy')).hash)
})

/**
 * Installs a policy that allows transfers of ETH, and requires approvals by two people of what operators
 * enter.
 * @param input field of the document that requires them
 */
async function installGuarded(workspace: string, input: 'enrolment' | 'orders'): Promise<void> {
  const { mode, nodes } = await result('policy', 'place', '--workspace', workspace)
  const approvals = [{ group: 'admins', k: 2 }]
  const file = write(`${workspace}.json`, {
    kind: 'custody-policy',
    v: 1,
    mode,
    workspace,
    number: 1,
    nodes,
    previous: '0'.repeat(64),
    people: PEOPLE.map((id) => ({ id, name: id, api_keys: [], keys: [keyEntry(id)] })),
    groups: { admins: PEOPLE },
    change: { approvals, delay_s: 3600, veto: 'admins' },
    stop: { group: 'admins' },
    resume: { approvals },
    [input]: { approvals },
    rules: [{ id: 'all', effect: 'allow', match: { action: ['transfer'], assets: ['ETH'] } }],
  })
  for (const name of PEOPLE)
    await result('policy', 'sign', file, '--as', name, '--key', keyFile(name))
  await result('policy', 'install', '--workspace', workspace, '--file', file)
}

test('transfers of an API key wait until people have approved its enrolment, and others do not', async () => {
  const earlier = await platform.user('guarded')
  await fundedWallet(platform, earlier, 'ETH', '5')
  await installGuarded('guarded', 'enrolment')
  const added = await platform.user('guarded')
  const pay = (as: User, amount: string) =>
    call<Transfer>(as, 'POST', '/dac/v1/transaction', transferBody('ETH', amount, SINK))
  const waiting = await pay(added, '0.1')
  assert.equal(waiting.status, 200, JSON.stringify(waiting.body))
  const { id } = waiting.body
  await waitFor('the reason why it waits', async () =>
    /ENROLMENT_APPROVAL/.test((await platform.cli('waiting')).stdout),
  )
  // An API key from before the policy is not delayed.
  await assertConfirmed(earlier, (await pay(earlier, '0.2')).body.id)
  const dryRun = { method: 'POST', uri: '/dac/v1/transaction', body: bodyOf('ETH', '0.1', SINK) }
  const evaluation = await call<Json>(added, 'POST', '/dac/v1/policy/evaluate', dryRun)
  assert.deepEqual([evaluation.status, evaluation.body.field], [400, 'api_key'])

  const { enrolments } = await result('policy', 'show', '--workspace', 'guarded')
  assert.deepEqual(
    enrolments.map(({ node, api_key }: Json) => [node, api_key]),
    [1, 2, 3].map((node) => [node, added.apiKey]),
  )
  const words = ['policy', 'approve-enrolment', '--workspace', 'guarded', '--api-key', added.apiKey]
  for (const name of PEOPLE.slice(0, 2)) {
    const { body } = await call<Json>(added, 'GET', '/dac/v1/transactions?asset=ETH')
    assert.equal(body.data.find((each: Json) => each.id === id).status, 'pending')
    const confirm = ['--confirm', enrolments[0].fingerprint]
    await result(...words, '--as', name, '--key', keyFile(name), ...confirm)
  }
  await assertConfirmed(added, id)
})

test('a gas tank is drained after people have approved the order of the operators, and not before', async () => {
  const workspace = 'ordered'
  const user = await platform.user(workspace)
  await installGuarded(workspace, 'orders')
  const tank = ['--workspace', workspace, '--network', 'ETH']
  const { address } = await result('gas-tank', 'address', ...tank)
  const balanceOf = async () =>
    (await call<Json[]>(user, 'GET', '/dac/v1/gas-tanks')).body.find(
      (each) => each['address'] === address,
    )?.['balance']
  await waitFor('the first fill of the gas tank', async () => Number(await balanceOf()) > 0)
  const balance = await balanceOf()
  const drain = ['gas-tank', 'drain', ...tank, '--to', SINK, '--order', 'order-1', '--json']
  const refused = await platform.cli(...drain)
  assert.equal(refused.status, 2, refused.stderr)
  assert.match(refused.stderr, /signer 3: drain to 0x.*, order order-1, NOT APPROVED/)
  assert.equal(await balanceOf(), balance)
  const words = ['policy', 'approve-order', '--workspace', workspace, '--order', 'order-1']
  for (const name of PEOPLE.slice(0, 2))
    await result(...words, '--as', name, '--key', keyFile(name), '--confirm', SINK)
  const drained = await result(...drain.slice(0, -1))
  assert.equal(drained.status, 'confirmed')
  assert.equal(Number(await balanceOf()), 0)
})

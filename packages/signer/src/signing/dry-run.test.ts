// Evaluation of unsigned requests at real nodes: it records nothing and is no authority.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  eth,
  ETH,
  pay,
  refused,
  signed,
  SignerCluster,
  SINK_ETH,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

const ETHER = 10n ** 18n
const RULES = [
  {
    id: 'daily',
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'] },
    windows: [{ name: 'day', hours: 24, per: 'workspace', max: { ETH: '2' }, share: '1' }],
  },
  {
    id: 'large',
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'] },
    amount: { min: { ETH: '2' }, max: { ETH: '10' } },
    approvals: [{ group: 'treasury', k: 1 }],
  },
]

let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let policy: TestPolicy
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
  policy = new TestPolicy(cluster, workspace, RULES, caller.api_key)
  await policy.install()
})
after(async () => {
  await cluster.stop()
})

const fieldsOf = (fields: object = {}) => ({
  asset: 'ETH',
  amount: '1',
  destination_address: SINK_ETH,
  destination_type: 'EXTERNAL',
  source_type: 'INTERNAL',
  ...fields,
})
const bodyOf = (fields: object = {}, more: object = {}) => ({
  workspace: workspace.name,
  api_key: caller.api_key,
  method: 'POST',
  uri: '/dac/v1/transaction',
  body: JSON.stringify(fieldsOf(fields)),
  ...more,
})
const ask = (fields: object = {}, more: object = {}, node = 1) =>
  cluster.post(node, '/policy/evaluate', bodyOf(fields, more))
async function evaluated(fields: object = {}, node = 1): Promise<Json> {
  const answer = await ask(fields, {}, node)
  signed(answer)
  return answer.body
}
const heights = async () =>
  (await Promise.all([1, 2, 3].map((node) => cluster.get(node, '/status')))).map(
    ({ body }) => body.record.height,
  )

test('returns the deciding rule, the approvals and the windows, and records nothing', async () => {
  const before = await heights()
  const allowed = await evaluated()
  assert.deepEqual(
    [allowed.policy, allowed.effect, allowed.via, allowed.needs, allowed.refusal],
    [{ number: 1, hash: policy.hash }, 'allow', 'daily', [], null],
  )
  assert.deepEqual(
    allowed.tried.map(({ rule, fits, why }: Json) => [rule, fits, why]),
    [
      ['daily', true, null],
      ['large', false, 'amount: 1 ETH is below 2'],
    ],
  )
  assert.deepEqual(allowed.windows, [
    {
      rule: 'daily',
      name: 'day',
      asset: 'ETH',
      share: false,
      used: '0',
      max: '2',
      fits: true,
      frees_at: null,
    },
  ])
  const large = await evaluated({ amount: '3' })
  assert.deepEqual(
    [large.effect, large.via, large.needs, large.refusal.code],
    ['approve', 'large', [{ group: 'treasury', k: 1, have: 0 }], 'POLICY_APPROVAL'],
  )
  const denied = await evaluated({ amount: '11' })
  assert.deepEqual(
    [denied.effect, denied.via, denied.refusal.code],
    ['deny', null, 'POLICY_DENIED'],
  )
  assert.deepEqual(await heights(), before)
})

test('returns nothing that could be used as authority', async () => {
  const { body } = await ask()
  assert.deepEqual(
    Object.keys(body).filter((name) =>
      ['statement', 'signature', 'issued_at', 'id'].includes(name),
    ),
    [],
  )
  const { method, uri, body: text } = bodyOf()
  refused(
    await cluster.post(1, '/sign', {
      workspace: workspace.name,
      purpose: pay({ token: 'none', method, uri, body: text } as never),
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER, nonce: 0, to: SINK_ETH }),
      partner: 2,
    }),
    'NOT_AUTHENTIC',
  )
})

test('reports the windows that signed payments have filled', async () => {
  const request = await transfer(caller, {
    asset: 'ETH',
    amount: '1.5',
    destination_address: SINK_ETH,
  })
  signed(
    await cluster.post(1, '/sign', {
      workspace: workspace.name,
      purpose: pay(request),
      unsigned: eth([1, ETH.chain_index, 0], { value: (ETHER * 3n) / 2n, nonce: 0, to: SINK_ETH }),
      partner: 2,
    }),
  )
  for (const node of [1, 2]) {
    const full = await evaluated({}, node)
    assert.deepEqual([full.effect, full.refusal.code], ['deny', 'POLICY_WINDOW'])
    assert.equal(full.windows[0].fits, false)
    assert.ok(full.windows[0].frees_at > 0)
  }
})

test('refuses unknown keys, other workspaces, other requests and invalid bodies', async () => {
  refused(await ask({}, { api_key: 'nobody' }), 'NOT_ENROLLED')
  const other = await cluster.workspace()
  const foreign = await other.caller()
  refused(await ask({}, { api_key: foreign.api_key }), 'WORKSPACE_MISMATCH')
  const reader = await workspace.caller(1, 'read-only')
  refused(await ask({}, { api_key: reader.api_key }), 'READ_ONLY')
  refused(await ask({}, { uri: '/dac/v1/wallet' }), 'ACTION_NOT_ALLOWED')
  refused(await ask({}, { method: 'GET' }), 'ACTION_NOT_ALLOWED')
  refused(await ask({}, { uri: '/dac/v1/auto-forwarding' }), 'BAD_REQUEST_FIELD')
  for (const body of ['', '[]', '{', '{"asset":"ETH"}'])
    refused(await ask({}, { body }), 'BAD_REQUEST_FIELD')
  refused(await ask({ amount: '0' }), 'BAD_REQUEST_FIELD')
  refused(await ask({ asset: 'NONE' }), 'UNKNOWN_ASSET')
  refused(await ask({}, { token: 'x' }), 'BAD_ORDER')
})

test('a workspace without a policy has none, and a stop denies', async () => {
  const other = await cluster.workspace()
  const { api_key } = await other.caller()
  const { body } = await ask({}, { workspace: other.name, api_key })
  assert.deepEqual(body, { policy: null })
  signed(await policy.present(2, policy.stop('carol')))
  const stopped = await evaluated({}, 3)
  assert.deepEqual([stopped.effect, stopped.refusal.code], ['deny', 'POLICY_STOPPED'])
})

test('lists the document that is in force with the people whose keys it proves', async () => {
  const answer = await cluster.post(2, '/policy/versions', { workspace: workspace.name, limit: 20 })
  signed(answer)
  const [version, ...more] = answer.body.versions
  assert.deepEqual([version.number, version.hash, more], [1, policy.hash, []])
  assert.equal(version.document, policy.first.document)
  assert.deepEqual(
    version.signed_by.find(({ person }: Json) => person === 'alice'),
    { person: 'alice', key: 'k1', at: null },
  )
  refused(
    await cluster.post(2, '/policy/versions', { workspace: workspace.name, limit: 22 }),
    'BAD_ORDER',
  )
})

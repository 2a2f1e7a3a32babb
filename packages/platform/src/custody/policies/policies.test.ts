// What the API says about a policy when signer nodes lie, differ or are silent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { canonicalText } from '@custody/policy'
import { allow, policyWith } from '../../../../policy/testing/documents.ts'
import type { Environment } from '../../core/environment.ts'
import { ApiError } from '../../core/errors.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { evaluatePolicy } from './evaluate-policy.ts'
import { listPolicyVersions } from './list-versions.ts'
import { listPolicyWindows } from './list-windows.ts'
import { readPolicy } from './read-policy.ts'
import { lastOf } from './simulate-policy.ts'

const { document, hash } = policyWith([allow('pay')])
const OTHER = policyWith([allow('other')])
const SINK = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const AWAY = 'away'
type Says = object | typeof AWAY | NodeRefused

/** Returns services over three nodes that say the given things. */
function servicesOf(...says: [Says, Says, Says]) {
  const calls: [number, string, Record<string, unknown>][] = []
  const signers = {
    peers: [1, 2, 3].map((node) => ({ node })),
    isPenalised: () => false,
    call(node: number, _method: string, path: string, body: Record<string, unknown>) {
      calls.push([node, path, body])
      const said = says[node - 1] as Says
      if (said === AWAY) return Promise.reject(new NodeUnavailable(node, 'no response'))
      return said instanceof NodeRefused ? Promise.reject(said) : Promise.resolve(said)
    },
  } as unknown as SignerNodes
  return {
    calls,
    services: {
      signers,
      environment: { now: () => 0 } as Environment,
      registry: loadRegistry('local'),
      networks: { has: () => true, get: () => ({ unfit: () => null }) },
      database: { one: () => Promise.resolve(undefined) },
    },
  }
}
const caller = {
  workspace: 'acme',
  workspaceId: 'w',
  subAccountId: 's',
  apiKey: 'k',
  role: 'full',
}
// oxlint-disable-next-line typescript/no-explicit-any -- the handlers are called without a server
const bodyOf = async (endpoint: { handler: any }, context: object, services: object) =>
  ((await endpoint.handler({ caller, ...context }, services)) as { body: Record<string, never> })
    .body
const fails = (code: string, field?: string) => (error: unknown) =>
  error instanceof ApiError && error.code === code && error.field === field

const view = (policy = { document, hash }, more: object = {}) => ({
  number: policy.document.number,
  hash: policy.hash,
  document: canonicalText(policy.document),
  next: null,
  stops: [],
  ...more,
})
const NONE = { number: null, hash: null, document: null }

test('the document in force is the one that two nodes have', async () => {
  const read = (...says: [Says, Says, Says]) => bodyOf(readPolicy, {}, servicesOf(...says).services)
  for (const [says, held] of [
    [
      [view(), view(), view()],
      [1, 2, 3],
    ],
    [
      [view(), view(OTHER), view()],
      [1, 3],
    ],
    [
      [AWAY, view(), view()],
      [2, 3],
    ],
    [
      [NONE, view(), view()],
      [2, 3],
    ],
  ] as const) {
    const policy = await read(...(says as [Says, Says, Says]))
    assert.deepEqual([policy['hash'], policy['held']], [hash, held])
    assert.deepEqual(policy['document'], document)
  }
  assert.equal((await read(NONE, NONE, view()))['hash'], null)
  for (const says of [
    [view(), view(OTHER), AWAY],
    [view(), AWAY, AWAY],
    [view(), NONE, {}],
    [AWAY, AWAY, AWAY],
  ] as [Says, Says, Says][])
    await assert.rejects(read(...says), fails('SIGNERS_UNAVAILABLE'))
})

test('returns the statements of the nodes that have the document, each by the node that signed it', async () => {
  const statement = (node: number, more: object = {}) => ({
    node,
    mode: 'local',
    nodes: 'cd'.repeat(32),
    workspace: 'acme',
    number: 1,
    hash,
    at: 1_800_000_000,
    signature: '5a'.repeat(64),
    ...more,
  })
  const says = (in_force: object | null, policy?: { document: typeof document; hash: string }) =>
    view(policy, { in_force })
  const read = async (...nodes: [Says, Says, Says]) =>
    (await bodyOf(readPolicy, {}, servicesOf(...nodes).services))['statements']
  assert.deepEqual(
    await read(
      says(statement(1)),
      says(statement(2)),
      says(statement(3, { hash: OTHER.hash }), OTHER),
    ),
    [statement(1), statement(2)],
  )
  const stopped = { stops: ['ef'.repeat(32)], stops_signature: 'a5'.repeat(64) }
  assert.deepEqual(await read(says(statement(1, stopped)), says(statement(2)), AWAY), [
    statement(1, stopped),
    statement(2),
  ])
  // Node 2 repeats the statement of node 1, and node 3 may have missed a change.
  assert.deepEqual(await read(says(statement(1)), says(statement(1)), says(null)), [statement(1)])
  assert.deepEqual(await read(view(), view(), AWAY), [], 'earlier versions of the node')
  assert.deepEqual(await read(NONE, NONE, NONE), [])
})

test('a document whose text does not have the hash is not returned', async () => {
  const forged = view(undefined, { document: canonicalText(OTHER.document) })
  const { services } = servicesOf(forged, forged, AWAY)
  await assert.rejects(bodyOf(readPolicy, {}, services), fails('SIGNERS_UNAVAILABLE'))
  const one = await bodyOf(readPolicy, {}, servicesOf(forged, view(), AWAY).services)
  assert.deepEqual(one['document'], document)
})

test('lists resets with the operators who have entered them, and the time from which they are in force', async () => {
  const resetOf = (hashes: [number, string][], acts_at: number | null) => ({
    reset: {
      number: 2,
      hash: OTHER.hash,
      document: canonicalText(OTHER.document),
      given_by: hashes.map(([node, of]) => ({ node, hash: of, given_at: 1 })),
      acts_at,
    },
  })
  const read = async (...more: [object, object, object]) => {
    const [one, two, three] = more.map((each) => view(undefined, each))
    const { services } = servicesOf(one as Says, two as Says, three as Says)
    return (await bodyOf(readPolicy, {}, services))['resets']
  }
  assert.deepEqual(await read({}, { reset: null }, {}), [])
  const other = 'ab'.repeat(32)
  assert.deepEqual(
    await read(
      resetOf([[1, OTHER.hash]], null),
      resetOf(
        [
          [1, OTHER.hash],
          [2, OTHER.hash],
          [3, other],
        ],
        null,
      ),
      {},
    ),
    [
      { hash: OTHER.hash, given_by: [1, 2], acts_at: null },
      { hash: other, given_by: [3], acts_at: null },
    ],
  )
  const all: [number, string][] = [1, 2, 3].map((node) => [node, OTHER.hash])
  assert.deepEqual(
    await read(resetOf(all, 1_800_000_000), resetOf(all, 1_799_999_000), resetOf(all, null)),
    [{ hash: OTHER.hash, given_by: [1, 2, 3], acts_at: '2027-01-15T08:00:00.000Z' }],
  )
})

test('lists pending changes with the nodes that have them, and every stop once', async () => {
  const next = {
    number: 2,
    hash: OTHER.hash,
    document: canonicalText(OTHER.document),
    acts_at: 1_800_000_000,
    vetoed_by: null,
  }
  const stop = { hash: 'ef'.repeat(32), sub_account: null, by: 'carol', at: 1_800_000_000 }
  const policy = await bodyOf(
    readPolicy,
    {},
    servicesOf(view(undefined, { next }), view(undefined, { next, stops: [stop] }), view())
      .services,
  )
  const [pending, ...more] = policy['pending'] as unknown as Record<string, unknown>[]
  assert.deepEqual(more, [])
  assert.deepEqual(
    { ...pending, changes: null },
    {
      ...next,
      document: OTHER.document,
      acts_at: '2027-01-15T08:00:00.000Z',
      held: [1, 2],
      changes: null,
    },
  )
  assert.deepEqual(policy['stops'], [{ ...stop, at: '2027-01-15T08:00:00.000Z' }])
})

test('the use of windows is the largest that nodes with the same policy report', async () => {
  const use = (used: string, more: object = {}) => ({
    rule: 'pay',
    window: 'day',
    per: 'workspace',
    of: [],
    hours: 24,
    readings: [{ asset: 'ETH', used, max: '4000000000000000000' }],
    ...more,
  })
  const says = (windows: object[], of = hash) => ({
    policy: { number: 1, hash: of },
    windows,
    left_off: false,
  })
  const list = (...nodes: [Says, Says, Says]) =>
    bodyOf(listPolicyWindows, {}, servicesOf(...nodes).services)
  const share = {
    per: 'share',
    of: ['main'],
    readings: [{ asset: null, used: '9', max: '10' }],
  }
  const { policy, data, by, left_off } = await list(
    says([use('1000000000000000000')]),
    says([use('1500000000000000000'), use('0', share)]),
    says([use('3000000000000000000')], OTHER.hash),
  )
  assert.deepEqual([policy, by, left_off], [{ number: 1, hash }, ['node 1', 'node 2'], false])
  const common = { rule: 'pay', window: 'day', per: 'workspace', hours: 24 }
  assert.deepEqual(data, [
    { ...common, share: true, of: 'main', limits: [{ asset: null, used: '9', max: '10' }] },
    { ...common, share: false, of: null, limits: [{ asset: 'ETH', used: '1.5', max: '4' }] },
  ])
  const none = await list({ policy: null }, { policy: null }, AWAY)
  assert.deepEqual(none, { policy: null, data: [], left_off: false, by: ['node 1', 'node 2'] })
  for (const nodes of [
    [says([]), AWAY, AWAY],
    [says([]), says([], OTHER.hash), AWAY],
    [says([]), { ...says([]), windows: [{}] }, AWAY],
  ] as [Says, Says, Says][])
    await assert.rejects(list(...nodes), fails('SIGNERS_UNAVAILABLE'))
})

test('lists the versions that two nodes have on record, in pages', async () => {
  const version = (policy = { document, hash }, number = 1) => ({
    number,
    hash: policy.hash,
    since: 1_800_000_000,
    document: canonicalText(policy.document),
    signed_by: [{ person: 'alice', key: 'k1', at: null }],
  })
  const second = policyWith([allow('pay')], { number: 2, previous: hash })
  const both = { versions: [version(second, 2), version()] }
  const list = (query: object, ...says: [Says, Says, Says]) =>
    bodyOf(listPolicyVersions, { query: { limit: 10, ...query } }, servicesOf(...says).services)
  const all = await list({}, both, both, { versions: [version()] })
  assert.deepEqual(
    (all['data'] as unknown as { number: number; kind: string; held: number[] }[]).map(
      ({ number, kind, held }) => [number, kind, held],
    ),
    [
      [2, 'change', [1, 2]],
      [1, 'first', [1, 2, 3]],
    ],
  )
  assert.deepEqual([all['next'], all['has_more']], [null, false])
  const page = await list({ limit: 1 }, both, both, AWAY)
  assert.deepEqual([page['next'], page['has_more']], ['2', true])
  const { calls, services } = servicesOf({ versions: [version()] }, { versions: [version()] }, AWAY)
  await bodyOf(listPolicyVersions, { query: { limit: 1, after: 2 } }, services)
  assert.deepEqual(calls[0], [1, '/policy/versions', { workspace: 'acme', before: 2, limit: 2 }])
  const alone = await list({}, both, { versions: [] }, { versions: [version(OTHER)] })
  assert.deepEqual(alone['data'], [], 'one node alone proves nothing')
  await assert.rejects(list({}, both, AWAY, AWAY), fails('SIGNERS_UNAVAILABLE'))
})

test('the history shows a reset as a reset', async () => {
  const second = policyWith([allow('pay')], { number: 2, previous: hash })
  const version = (kind?: string) => ({
    versions: [
      {
        number: 2,
        hash: second.hash,
        since: 1_800_000_000,
        document: canonicalText(second.document),
        signed_by: [{ person: 'alice', key: 'k1', at: null }],
        ...(kind === undefined ? {} : { kind }),
      },
    ],
  })
  const kindOf = async (...kinds: (string | undefined)[]) => {
    const [one, two, three] = kinds.map(version)
    const { services } = servicesOf(one as Says, two as Says, three ?? AWAY)
    const { data } = await bodyOf(listPolicyVersions, { query: { limit: 10 } }, services)
    return (data as unknown as { kind: string }[]).map(({ kind }) => kind)
  }
  for (const [kinds, expected] of [
    [['reset', 'reset', 'reset'], 'reset'],
    [['change', 'change', 'change'], 'change'],
    [['change', 'reset', 'reset'], 'reset'],
    [['change', 'reset', 'change'], 'change'],
    [['change', 'reset'], 'reset'],
    // A node of an earlier version states no kind.
    [['reset', undefined, undefined], 'reset'],
    [[undefined, undefined], 'change'],
  ] as const)
    assert.deepEqual(await kindOf(...kinds), [expected], JSON.stringify(kinds))
})

const evaluation = (
  effect: 'allow' | 'approve' | 'deny',
  code: string | null,
  more: object = {},
) => ({
  policy: { number: 1, hash },
  effect,
  via: effect === 'deny' ? null : 'pay',
  needs: [],
  tried: [],
  windows: [],
  refusal: code === null ? null : { code, message: 'because', frees_at: 1_800_000_000 },
  ...more,
})
const ALLOWS = evaluation('allow', null)
const FULL = evaluation('deny', 'POLICY_WINDOW')
const request = {
  method: 'POST',
  uri: '/dac/v1/transaction',
  body: {
    asset: 'ETH',
    amount: '1',
    destination_address: SINK,
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
  },
}
const evaluated = (says: [Says, Says, Says], more: object = {}, who: object = caller) =>
  bodyOf(
    evaluatePolicy,
    { body: { ...request, ...more }, caller: who },
    servicesOf(...says).services,
  )

test('two nodes evaluate a request, and the third one only if they differ', async () => {
  const { calls, services } = servicesOf(ALLOWS, ALLOWS, FULL)
  const first = await bodyOf(evaluatePolicy, { body: request }, services)
  assert.deepEqual([first['effect'], first['by'], calls.length], ['allow', ['node 1', 'node 2'], 2])
  assert.deepEqual(calls[0]?.[2], {
    workspace: 'acme',
    api_key: 'k',
    method: 'POST',
    uri: request.uri,
    body: JSON.stringify(request.body),
  })
  for (const [says, effect, by] of [
    [[ALLOWS, FULL, FULL], 'deny', ['node 2', 'node 3']],
    [[FULL, ALLOWS, ALLOWS], 'allow', ['node 2', 'node 3']],
    [[AWAY, ALLOWS, ALLOWS], 'allow', ['node 2', 'node 3']],
    // What is full at one node is full at every pair.
    [[ALLOWS, FULL, AWAY], 'deny', ['node 1', 'node 2']],
    [[{ policy: null }, { policy: null }, AWAY], 'none', ['node 1', 'node 2']],
  ] as const) {
    const result = await evaluated([...says] as [Says, Says, Says])
    assert.deepEqual([result['effect'], result['by']], [effect, by])
  }
  const full = await evaluated([FULL, FULL, AWAY])
  assert.deepEqual(full['refusal'], {
    code: 'POLICY_WINDOW',
    message: 'because',
    frees_at: '2027-01-15T08:00:00.000Z',
  })
})

test('an evaluation fails if no two nodes agree, and with 400 if they refuse the request', async () => {
  const refused = (code: string, more: object = {}) =>
    new NodeRefused(1, 422, { error: code, message: 'amount: is wrong', ...more })
  for (const says of [
    [ALLOWS, AWAY, AWAY],
    [ALLOWS, { policy: null }, AWAY],
    [ALLOWS, evaluation('allow', null, { policy: { number: 2, hash: OTHER.hash } }), AWAY],
    [refused('POLICY_BEHIND'), refused('POLICY_BEHIND'), AWAY],
    [refused('NOT_FOUND'), refused('NOT_FOUND'), refused('NOT_FOUND')],
    [{ policy: 1 }, {}, AWAY],
  ] as [Says, Says, Says][])
    await assert.rejects(evaluated(says), fails('SIGNERS_UNAVAILABLE'))
  for (const [code, api, field] of [
    ['BAD_REQUEST_FIELD', 'INVALID_REQUEST', 'body.amount'],
    ['UNKNOWN_ASSET', 'UNSUPPORTED_ASSET', 'body.asset'],
    ['NOT_ENROLLED', 'INVALID_REQUEST', 'api_key'],
    ['ENROLMENT_APPROVAL', 'INVALID_REQUEST', 'api_key'],
  ] as const) {
    const error = refused(code, { field: 'amount' })
    await assert.rejects(evaluated([error, error, AWAY]), fails(api, field))
  }
})

test('evaluates a forwarding rule, whose body is checked as at its endpoint', async () => {
  const uri = '/dac/v1/auto-forwarding'
  const rule = {
    asset: 'ETH',
    min_amount: '1',
    daily_cap: '10',
    destination_address: SINK,
    expires_at: '2030-01-31T12:00:00Z',
  }
  const { calls, services } = servicesOf(ALLOWS, ALLOWS, AWAY)
  const { effect } = await bodyOf(
    evaluatePolicy,
    { body: { ...request, uri, body: rule } },
    services,
  )
  assert.equal(effect, 'allow')
  const common = { workspace: 'acme', api_key: 'k', method: 'POST' }
  assert.deepEqual(calls[0]?.[2], { ...common, uri, body: JSON.stringify(rule) })
  for (const [fields, code, field] of [
    [{ min_amount: '0' }, 'INVALID_AMOUNT', 'min_amount'],
    [{ daily_cap: '0.5' }, 'INVALID_AMOUNT', 'daily_cap'],
    [{ destination_address: 'x' }, 'INVALID_ADDRESS', 'destination_address'],
    [{ expires_at: '1970-01-01T00:00:00Z' }, 'INVALID_REQUEST', 'expires_at'],
    [{ expires_at: 'soon' }, 'INVALID_REQUEST', 'expires_at'],
    [{ asset: 'NONE' }, 'UNSUPPORTED_ASSET', 'asset'],
    [{ amount: '1' }, 'UNKNOWN_FIELD', 'amount'],
  ] as const)
    await assert.rejects(
      evaluated([ALLOWS, ALLOWS, AWAY], { uri, body: { ...rule, ...fields } }),
      fails(code, `body.${field}`),
      field,
    )
  // The database finds the destination among the addresses of the sub-account.
  const own = { ...servicesOf(ALLOWS, ALLOWS, AWAY).services, database: { one: async () => ({}) } }
  await assert.rejects(
    bodyOf(evaluatePolicy, { body: { ...request, uri, body: rule } }, own),
    fails('INVALID_ADDRESS', 'body.destination_address'),
  )
})

test('a read-only caller, such as a session of the panel, must name an API key', async () => {
  const session = {
    ...caller,
    role: 'read-only',
    get apiKey(): string {
      throw new Error('a session has no API key')
    },
  }
  await assert.rejects(
    evaluated([ALLOWS, ALLOWS, AWAY], {}, session),
    fails('INVALID_REQUEST', 'api_key'),
  )
  for (const key of ['x', '7c9e6679-7425-40de-944b-e07fc1f90ae7'])
    await assert.rejects(
      evaluated([ALLOWS, ALLOWS, AWAY], { api_key: key }, session),
      fails('INVALID_REQUEST', 'api_key'),
    )
})

test('a simulation of many rules replays fewer transfers', () => {
  const withRules = (count: number) =>
    policyWith(Array.from({ length: count }, (_, at) => allow(`rule-${at}`)))
  assert.equal(lastOf(undefined, withRules(3), null), 1000)
  assert.equal(lastOf(7, withRules(3), withRules(3)), 7)
  assert.equal(lastOf(undefined, withRules(200), withRules(200)), 500)
  assert.equal(lastOf(500, withRules(200), withRules(200)), 500)
  assert.throws(() => lastOf(501, withRules(200), withRules(200)), fails('INVALID_REQUEST', 'last'))
})

// Signed statements: the exact bytes, and each rule that a statement can break.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { keyOf, newKey, NOW, policyWith } from '../../testing/documents.ts'
import { signWith, statementsOf } from '../../testing/statements.ts'
import { PolicyError, type PolicyErrorCode } from '../error.ts'
import type { Policy } from '../evaluation/compile.ts'
import { assertSuspension, canReach, countQuorum } from './quorum.ts'
import { challengeOf, DOMAINS, statementBytes, statementHash, type Statement } from './shapes.ts'
import { assertStatement, readSigned, verifyStatement, type StatementContext } from './verify.ts'

const policy = policyWith([])
const context: StatementContext = { now_s: NOW, suspended: new Set() }
const kinds = Object.keys(DOMAINS) as Statement['kind'][]
const base = (kind: Statement['kind'], fields: object = {}, under: Policy = policy): Statement =>
  ({ ...statementsOf(under)[kind], ...fields }) as Statement

/** Signs by the person and key that the statement names, and verifies. */
const verifies = (statement: Statement, fields: Partial<StatementContext> = {}): string =>
  verifyStatement(policy, signWith(keyOf(statement.by), statement), { ...context, ...fields })

const codeOf = (call: () => unknown): [PolicyErrorCode, string] => {
  try {
    call()
  } catch (error) {
    assert.ok(error instanceof PolicyError, String(error))
    return [error.code, error.path]
  }
  throw new Error('nothing was refused')
}

test('the bytes are the domain and the canonical JSON of all fields except the kind', () => {
  const stop = base('stop', { at: 1, expires: 2, nodes: 'ab'.repeat(32), reason: 'r' })
  const text =
    'custody/policy-stop/v1\n' +
    `{"at":1,"by":"alice","expires":2,"key":"k1","mode":"mainnet","nodes":"${'ab'.repeat(32)}",` +
    '"reason":"r","sub_account":null,"v":1,"workspace":"acme"}'
  assert.equal(Buffer.from(statementBytes(stop)).toString('utf8'), text)
  const digest = createHash('sha256').update(text).digest()
  assert.equal(statementHash(stop), digest.toString('hex'))
  assert.equal(challengeOf(stop), digest.toString('base64url'))
})

test('an approval has the bytes of its documentation', () => {
  const approval = Buffer.from(statementBytes(base('approval'))).toString('utf8')
  assert.equal(
    approval,
    'custody/approval/v1\n' +
      `{"action":"transfer","at":${NOW - 5},"by":"alice","decision":"approve","expires":${NOW + 3600},` +
      '"facts":{"amount":"10000000","asset":"BTC","contract":null,"decimals":8,"fee_asset":"BTC",' +
      '"fee_decimals":8,"fee_max":"50000","network":"BTC","resource":null,"standing":null,' +
      '"sub_account":"main","tag":null,"to":"bc1qpayee"},' +
      '"id":"5f1c0e0e-3b6e-8c3a-9d5e-0a4b7c2d1e6f","key":"k1","mode":"mainnet",' +
      `"nodes":"${'ab'.repeat(32)}","policy":{"hash":"${policy.hash}","number":1},` +
      `"subject":"${'ef'.repeat(32)}","v":1,"workspace":"acme"}`,
  )
})

test('no domain is the beginning of another one', () => {
  const domains = [...Object.values(DOMAINS), 'custody/policy/v1\n']
  for (const [at, domain] of domains.entries())
    for (const other of domains.filter((_, each) => each !== at))
      assert.equal(other.startsWith(domain), false, domain)
})

for (const kind of kinds)
  test(`verifies a statement of the kind ${kind} by Ed25519 and by P-256`, () => {
    const byAlice = base(kind)
    assert.equal(verifies(byAlice), statementHash(byAlice))
    const target = { person: kind === 'suspend' ? 'alice' : 'bob', key: 'k1' }
    const fields = 'target' in byAlice ? { by: 'bob', target } : { by: 'bob' }
    const byBob = base(kind, fields)
    assert.equal(verifies(byBob), statementHash(byBob))
    const signed = signWith(keyOf('alice'), byAlice)
    assert.deepEqual(readSigned(JSON.stringify(signed)), signed)
  })

test('every field is covered by the signature', () => {
  for (const kind of kinds) {
    const statement = base(kind)
    const signed = signWith(keyOf('alice'), statement)
    for (const [field, value] of Object.entries(statement)) {
      if (field === 'kind' || field === 'v') continue
      const changed = {
        ...statement,
        [field]:
          typeof value === 'number'
            ? value + 1
            : typeof value === 'string'
              ? field === 'decision'
                ? 'reject'
                : field === 'action'
                  ? 'refund'
                  : `${value}0`
              : value === null
                ? 'main'
                : { ...(value as object), extra: 1 },
      } as Statement
      assert.throws(
        () => verifyStatement(policy, { ...signed, statement: changed }, context),
        PolicyError,
        `${kind}.${field}`,
      )
    }
  }
})

test('a signature for one kind is not one for another', () => {
  const veto = base('veto')
  const { signature } = signWith(keyOf('alice'), veto)
  const { next: _next, ...fields } = veto as Extract<Statement, { kind: 'veto' }>
  const possession = { ...fields, kind: 'possession' } as unknown as Statement
  assert.deepEqual(
    codeOf(() => verifyStatement(policy, { statement: possession, signature }, context)),
    ['SIGNATURE', 'signature'],
  )
})

test('refuses statements for another mode, workspace, installation or document', () => {
  for (const kind of kinds) {
    assert.deepEqual(
      codeOf(() => verifies(base(kind, { mode: 'local' }))),
      ['OTHER_WORKSPACE', 'mode'],
    )
    assert.deepEqual(
      codeOf(() => verifies(base(kind, { workspace: 'x' }))),
      ['OTHER_WORKSPACE', 'workspace'],
    )
    assert.deepEqual(
      codeOf(() => verifies(base(kind, { nodes: 'cd'.repeat(32) }))),
      ['OTHER_WORKSPACE', 'nodes'],
    )
  }
  for (const kind of ['approval', 'possession', 'change', 'veto', 'resume'] as const)
    for (const other of [
      { number: 2, hash: policy.hash },
      { number: 1, hash: 'ab'.repeat(32) },
    ])
      assert.deepEqual(
        codeOf(() => verifies(base(kind, { policy: other }))),
        ['OTHER_POLICY', 'policy'],
      )
  for (const kind of ['change', 'veto'] as const)
    assert.deepEqual(
      codeOf(() => verifies(base(kind, { next: { number: 3, hash: 'ab'.repeat(32) } }))),
      ['OTHER_POLICY', 'next.number'],
    )
})

test('refuses statements outside their time, with the bounds included', () => {
  const at = (at: number, expires: number) => () => verifies(base('stop', { at, expires }))
  at(NOW + 60, NOW + 61)()
  at(NOW, NOW + 604_800)()
  at(NOW - 604_799, NOW + 1)()
  assert.deepEqual(codeOf(at(NOW + 61, NOW + 100)), ['NOT_YET', 'at'])
  assert.deepEqual(codeOf(at(NOW, NOW + 604_801)), ['SHAPE', 'expires'])
  assert.deepEqual(codeOf(at(NOW, NOW)), ['SHAPE', 'expires'])
  assert.deepEqual(codeOf(at(NOW - 100, NOW)), ['EXPIRED', 'expires'])
})

test('refuses unknown people and keys, passkeys, and keys of other people', () => {
  const signed = (fields: object) => signWith(keyOf('alice'), base('stop', fields))
  const code = (fields: object) => codeOf(() => verifyStatement(policy, signed(fields), context))
  assert.deepEqual(code({ by: 'stranger' }), ['UNKNOWN_PERSON', 'by'])
  assert.deepEqual(code({ by: 'constructor' }), ['UNKNOWN_PERSON', 'by'])
  assert.deepEqual(code({ key: 'k2' }), ['UNKNOWN_KEY', 'key'])
  assert.deepEqual(code({ by: 'bob' }), ['SIGNATURE', 'signature'])
  const passkey = {
    ...newKey('k1').key,
    kind: 'passkey',
    credential: 'c'.repeat(22),
    rp_id: 'localhost',
    origins: ['http://localhost:24873'],
    device_bound: true,
  }
  const alice = { id: 'alice', name: 'A', api_keys: [], keys: [passkey] }
  const others = policy.document.people.filter(({ id }) => id !== 'alice')
  const withPasskey = policyWith([], { people: [alice, ...others] })
  const statement = base('stop', {}, withPasskey)
  assert.deepEqual(
    codeOf(() => verifyStatement(withPasskey, signWith(keyOf('alice'), statement), context)),
    ['SIGNATURE', 'passkey'],
  )
  assert.equal(assertStatement(withPasskey, statement, context).kind, 'passkey')
})

test('only people whom the document names may change, veto, stop, resume and suspend', () => {
  for (const kind of ['change', 'veto', 'stop', 'resume', 'suspend'] as const)
    assert.deepEqual(
      codeOf(() => verifies(base(kind, { by: 'dan' }))),
      ['NOT_ALLOWED', 'by'],
      kind,
    )
  const target = (person: string) => ({ target: { person, key: 'k1' } })
  assert.deepEqual(
    codeOf(() => verifies(base('revoke', target('bob')))),
    ['NOT_ALLOWED', 'by'],
  )
  assert.deepEqual(
    codeOf(() => verifies(base('suspend', target('alice')))),
    ['NOT_ALLOWED', 'by'],
  )
  assert.deepEqual(
    codeOf(() => verifies(base('suspend', target('stranger')))),
    ['UNKNOWN_PERSON', 'target.person'],
  )
  verifies(base('revoke', { by: 'dan', ...target('dan') }))
})

test('a suspended key may still reject, veto and stop, and nothing else', () => {
  const suspended = new Set(['alice/k1'])
  for (const statement of [base('approval', { decision: 'reject' }), base('veto'), base('stop')])
    verifies(statement, { suspended })
  for (const kind of ['approval', 'possession', 'change', 'resume', 'suspend', 'revoke'] as const)
    assert.deepEqual(
      codeOf(() => verifies(base(kind), { suspended })),
      ['KEY_SUSPENDED', 'key'],
      kind,
    )
})

test('refuses facts that do not belong to the action, and unknown fields', () => {
  const code = (statement: unknown) =>
    codeOf(() => readSigned(JSON.stringify({ statement, signature: 'x' })))
  const approval = base('approval') as Extract<Statement, { kind: 'approval' }>
  const facts = (fields: object) => ({ ...approval, facts: { ...approval.facts, ...fields } })
  assert.deepEqual(code({ ...approval, action: 'forward' }), ['SHAPE', 'statement'])
  assert.deepEqual(code({ ...approval, action: 'stake' }), ['SHAPE', 'statement'])
  assert.deepEqual(code(facts({ amount: null })), ['SHAPE', 'statement'])
  assert.deepEqual(code(facts({ amount: '01' })), ['SHAPE', 'statement.facts.amount'])
  assert.deepEqual(code(facts({ amount: '1.5' })), ['SHAPE', 'statement.facts.amount'])
  assert.deepEqual(code(facts({ to: 'a without tag on BTC. b' })), ['SHAPE', 'statement.facts.to'])
  assert.deepEqual(code(facts({ asset: 'BTC from x' })), ['SHAPE', 'statement.facts.asset'])
  assert.deepEqual(code(facts({ memo: 'x' })), ['SHAPE', 'statement.facts.memo'])
  assert.deepEqual(code({ ...approval, action: 'call' }), ['SHAPE', 'statement.action'])
  assert.deepEqual(code({ ...approval, extra: 1 }), ['SHAPE', 'statement.extra'])
  assert.deepEqual(code({ ...approval, kind: 'other' }), ['SHAPE', 'statement.kind'])
})

test('counts distinct people of a quorum, and no suspended keys', () => {
  const { approvals } = policy.document.change
  const count = (people: string[], suspended: string[] = []) =>
    countQuorum(
      policy,
      approvals,
      people.map((person) => ({ person, key: 'k1' })),
      new Set(suspended),
    )
  assert.deepEqual(count(['alice', 'alice']), {
    needs: [{ group: 'admins', k: 2, have: 1 }],
    isMet: false,
  })
  assert.equal(count(['alice', 'bob']).isMet, true)
  assert.equal(count(['alice', 'dan']).isMet, false)
  assert.equal(count(['alice', 'bob'], ['bob/k1']).isMet, false)
  assert.equal(canReach(policy, approvals, new Set(['bob/k1'])), true)
  assert.equal(canReach(policy, approvals, new Set(['bob/k1', 'carol/k1'])), false)
})

test('a suspension must leave enough people, and each person may have one', () => {
  const of = (by: string, person: string) => ({ by, target: { person, key: 'k1' } })
  const none: ReadonlySet<string> = new Set()
  const carol = new Set(['carol/k1'])
  assertSuspension(policy, of('alice', 'bob'), [], none)
  assertSuspension(policy, of('alice', 'dan'), [of('bob', 'carol')], carol)
  assert.deepEqual(
    codeOf(() => assertSuspension(policy, of('alice', 'bob'), [of('bob', 'carol')], carol)),
    ['NOT_ALLOWED', 'target'],
  )
  assert.deepEqual(
    codeOf(() => assertSuspension(policy, of('alice', 'dan'), [of('alice', 'erin')], none)),
    ['NOT_ALLOWED', 'by'],
  )
})

test('hostile statements cause no other error than PolicyError', () => {
  const signed = kinds.map((kind) => JSON.stringify(signWith(keyOf('alice'), base(kind))))
  const spliced = fc
    .tuple(fc.constantFrom(...signed), fc.nat(400), fc.nat(40), fc.string({ maxLength: 12 }))
    .map(([text, at, length, insert]) => text.slice(0, at) + insert + text.slice(at + length))
  const replaced = fc
    .tuple(fc.constantFrom(...signed), fc.jsonValue(), fc.nat(20))
    .map(([text, value, at]) => {
      const parsed = JSON.parse(text) as { statement: Record<string, unknown> }
      const names = Object.keys(parsed.statement)
      parsed.statement[names[at % names.length] as string] = value
      return JSON.stringify(parsed)
    })
  const any = fc.oneof(spliced, replaced, fc.json(), fc.string())
  fc.assert(
    fc.property(any, (text) => {
      try {
        verifyStatement(policy, readSigned(text), context)
      } catch (error) {
        assert.ok(error instanceof PolicyError, String(error))
      }
    }),
    { numRuns: 3_000 },
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playHostile } from '../hostile/play.ts'
import { SimulatedServer } from '../setup-mode.ts'
import { simulate } from '../simulate.ts'
import { NaivePolicy, type SignedPayment } from './naive-policy.ts'
import { placeOf, signedBy } from './people.ts'
import { PolicyRecord, type Decision } from './policy-record.ts'
import { SignatureCheck } from './signature-check.ts'
import { documentOf, FIRST_KEYS, unitsOf, type Terms } from './terms.ts'

/** Tests that the oracle of policies detects violations, and that a seed gives the same run. */
const NOW_MS = Date.UTC(2030, 0, 1)
const NOW_S = NOW_MS / 1000
const ETH = { code: 'ETH', decimals: 18, unit: 10n ** 15n }
const TERMS: Terms = {
  smallMax: 15n,
  count: 2,
  sum: 25n,
  largeMin: 15n,
  k: 2,
  approvalS: 900,
  denyMin: 45n,
  delayS: 3600,
  keys: FIRST_KEYS,
}

function fixture() {
  const record = new PolicyRecord()
  const place = { nodes: 'ab'.repeat(32), apiKeys: ['key'], assets: [ETH] }
  const first = record.add(documentOf(TERMS, { ...place, previous: null }), TERMS)
  const second = record.add(documentOf(TERMS, { ...place, previous: first }), TERMS)
  const naive = new NaivePolicy(record, 60)
  const payment = (tenths: bigint, fields: Partial<SignedPayment> = {}): SignedPayment => ({
    atMs: NOW_MS,
    pair: [1, 2],
    hash: first.hash,
    id: 'a',
    authorization: 'a',
    subAccount: 'sub-1',
    asset: ETH,
    units: unitsOf(ETH, tenths),
    ...fields,
  })
  const decide = (by: string, fields: Partial<Decision> = {}) =>
    record.decisions.push({
      id: 'a',
      by,
      key: 'k1',
      decision: 'approve',
      at: NOW_S - 5,
      expires: NOW_S + 600,
      hash: first.hash,
      isForged: false,
      sentMs: NOW_MS - 5000,
      answeredMs: null,
      result: null,
      ...fields,
    })
  const statement = (by: string, fields: object) => {
    const common = { ...placeOf(first.document), by, key: 'k1', at: NOW_S, expires: NOW_S + 60 }
    return signedBy(`${by}/k1`, { ...common, ...fields } as never)
  }
  const present = (by: string, fields: object, atMs: number, nodes: readonly number[]) =>
    record.presented.push({
      atMs,
      nodes,
      item: { kind: 'statement', workspace: 'acme', signed: statement(by, fields) },
    })
  return { record, naive, first, second, payment, decide, present, statement }
}

test('the oracle allows a large payment only with approvals of enough people that count', () => {
  const refused = (act: (given: ReturnType<typeof fixture>) => void) => {
    const given = fixture()
    given.decide('dan')
    act(given)
    return typeof given.naive.wayOf(given.payment(20n)) === 'object'
  }
  assert.equal(
    refused(({ decide }) => decide('erin')),
    false,
  )
  assert.equal(
    refused(() => undefined),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('dan')),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('frank')),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { isForged: true })),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { decision: 'reject' })),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { id: 'b' })),
    true,
  )
  assert.equal(
    refused(({ decide, second }) => decide('erin', { hash: second.hash })),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { expires: NOW_S - 100 })),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { at: NOW_S - 1000 })),
    true,
  )
  assert.equal(
    refused(({ decide }) => decide('erin', { sentMs: NOW_MS + 1 })),
    true,
  )
  const target = { person: 'erin', key: 'k1' }
  const revoked = (nodes: readonly number[]) =>
    refused(({ decide, present }) => {
      decide('erin')
      present('erin', { kind: 'revoke', target }, NOW_MS - 1, nodes)
    })
  assert.deepEqual([revoked([2]), revoked([3])], [true, false])
})

test('the oracle denies what a rule denies, and does not limit the other sub-account', () => {
  const { naive, payment, decide } = fixture()
  for (const by of ['dan', 'erin']) decide(by)
  assert.deepEqual(naive.wayOf(payment(45n)), { why: 'the rule "most" denies it' })
  assert.equal(naive.wayOf(payment(45n, { subAccount: 'sub-2' })), 'free')
  assert.equal(naive.wayOf(payment(10n)), 'small')
})

test('the oracle counts the number and the sum of payments in a window exactly', () => {
  const { naive, payment } = fixture()
  const of = (name: string, tenths: bigint, minutes: number) =>
    payment(tenths, { authorization: name, atMs: NOW_MS - minutes * 60_000 })
  const last = payment(10n)
  assert.equal(naive.overWindow([of('b', 15n, 30)], last), null)
  assert.match(String(naive.overWindow([of('b', 16n, 30)], last)), /in the window of/)
  assert.match(String(naive.overWindow([of('b', 1n, 30), of('c', 1n, 20)], last)), /3 payments/)
  assert.equal(naive.overWindow([of('b', 1n, 30), of('c', 1n, 61)], last), null)
  // A payment that is signed again counts once.
  assert.equal(naive.overWindow([of('b', 1n, 30), of('a', 10n, 20)], last), null)
})

test('the oracle accepts a document only after its proposal and delay, and without a veto', () => {
  const { naive, record, first, second, present } = fixture()
  const why = (atMs: number) => naive.notInForce(second.hash, [1, 2], atMs)
  assert.equal(naive.notInForce(first.hash, [1, 2], NOW_MS), null)
  assert.equal(naive.notInForce('cd'.repeat(32), [1, 2], NOW_MS), 'no person wrote it')
  assert.equal(why(NOW_MS), 'no node accepted it')
  const item = { workspace: 'acme', document: second.text, possessions: [], approvals: [] }
  record.presented.push({ atMs: NOW_MS, nodes: [1], item: { kind: 'change', ...item } })
  assert.match(String(why(NOW_MS + 3_000_000)), /before its delay/)
  assert.equal(why(NOW_MS + 3_600_000), null)
  const next = { number: 2, hash: second.hash }
  const policy = { number: 1, hash: first.hash }
  present('carol', { kind: 'veto', policy, next }, NOW_MS + 5, [2])
  assert.match(String(why(NOW_MS + 3_600_000)), /veto/)
  assert.equal(naive.notInForce(second.hash, [1, 3], NOW_MS + 3_600_000), null)
})

test('the oracle reports a payment under a stop until people have ended it', () => {
  const { naive, record, first, present, statement } = fixture()
  const stop = { kind: 'stop', sub_account: 'sub-1', reason: 'A key was stolen' }
  present('alice', stop, NOW_MS, [1])
  const stopped = (subAccount: string | null, pair = [1, 2], atMs = NOW_MS + 5) =>
    naive.stopFor(pair, subAccount, atMs) !== undefined
  assert.deepEqual(
    [
      stopped('sub-1'),
      stopped('sub-2'),
      stopped('sub-1', [2, 3]),
      stopped('sub-1', [1, 2], NOW_MS - 1),
    ],
    [true, false, false, false],
  )
  const order = { workspace: 'acme', purpose: { kind: 'pay' }, unsigned: { bytes: '00' } }
  const signature = { atMs: NOW_MS + 5, pair: [1, 2], order, hashes: [first.hash, first.hash] }
  const wanted = { id: 'a', authorization: 'a', subAccount: 'sub-1', asset: ETH, units: 1n }
  const problems = (kind: string) => {
    const check = new SignatureCheck(record, naive, () => wanted)
    check.check({ ...signature, order: { ...order, purpose: { kind } } } as never)
    return check.problems.join()
  }
  assert.match(problems('pay'), /was signed by 1,2 under the stop/)
  assert.equal(problems('cancel'), '')
  const item = { workspace: 'acme', stop: statement('alice', stop), approvals: [] }
  record.presented.push({ atMs: NOW_MS + 3, nodes: [2], item: { kind: 'resumed', ...item } })
  assert.equal(problems('pay'), '')
})

test('the oracle counts what a lost node had only if another node has it too', () => {
  const { naive, record, present } = fixture()
  const lostMs = NOW_MS + 500
  const stopped = (nodes: readonly number[], isRead: boolean, atMs: number) => {
    record.presented.length = 0
    present('alice', { kind: 'stop', sub_account: null, reason: 'A key was stolen' }, NOW_MS, nodes)
    record.lose(1, lostMs, () => isRead)
    return naive.stopFor([1, 2], null, atMs) !== undefined
  }
  assert.equal(stopped([1], false, lostMs - 1), true)
  assert.equal(stopped([1], false, lostMs), false)
  assert.equal(stopped([1], true, lostMs), true)
  assert.equal(stopped([1, 3], false, lostMs), true)
  assert.equal(stopped([2], false, lostMs), true)
})

test('the oracle reports a signature of two nodes with different or earlier documents', () => {
  const { naive, record, first, second } = fixture()
  const item = { workspace: 'acme', document: second.text, possessions: [], approvals: [] }
  record.presented.push({ atMs: NOW_MS - 7_200_000, nodes: [1], item: { kind: 'change', ...item } })
  const order = { workspace: 'acme', purpose: { kind: 'sweep' }, unsigned: { bytes: '00' } }
  const check = new SignatureCheck(record, naive, () => undefined)
  const sign = (...hashes: string[]) =>
    check.check({ atMs: NOW_MS, pair: [1, 2], order, hashes } as never)
  sign(second.hash, second.hash)
  assert.deepEqual(check.problems, [])
  sign(first.hash, second.hash)
  sign(first.hash, first.hash)
  assert.match(check.problems.join('\n'), /signed under .* and .*\n.*under the earlier document 1/)
})

test('a hostile seed with a policy gives the same result each time', async () => {
  for (const seed of [3, 7]) {
    const first = await playHostile(seed)
    assert.equal(first.failure, null)
    assert.ok(first.signed > 0)
    const isRestored = (first.faults.get('a node was restored') ?? 0) > 0
    assert.equal(isRestored, seed === 7)
    const again = await playHostile(seed, first.draws)
    assert.deepEqual([again.signed, [...again.refusals]], [first.signed, [...first.refusals]])
  }
})

test('a randomized run with a policy gives the same trace each time', async () => {
  const databaseServer = new SimulatedServer()
  try {
    await databaseServer.start()
    const runs = []
    for (let count = 0; count < 2; count++) runs.push(await simulate(databaseServer, 15))
    assert.deepEqual(
      runs.map(({ failure }) => failure),
      [null, null],
    )
    assert.deepEqual(runs[0]?.trace, runs[1]?.trace)
    const faults = [...(runs[0]?.faults.keys() ?? [])]
    assert.ok(
      faults.some((kind) => /^(a person sent|a node accepted)/.test(kind)),
      faults.join(),
    )
  } finally {
    await databaseServer.stop()
  }
})

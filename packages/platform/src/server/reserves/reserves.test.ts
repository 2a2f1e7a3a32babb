// Tests of the Merkle tree of liabilities: built by the platform's code, verified by the client's
// code, and both compared with hashes from a third implementation.
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { canonicalJson } from '@custody/request-auth'
import {
  VerificationError,
  verifyReserves,
  type ReservesProof,
  type Statement,
} from '@custody/client/verify-reserves'
import { blindOf, leafOf, rootOf, secretOf, siblingsOf, treeOf } from './tree.ts'
import { ELSEWHERE, OPERATING, OWED, OWED_TO_NOBODY } from './books.ts'
import * as fc from '../../../../../testing/property.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'

const installation = useDatabase()
const ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
const TIME = '2026-11-22T10:00:00.000Z'
const LIMIT = 1n << 128n
const [FROM, TO] = [
  { height: 100, hash: 'aa' },
  { height: 101, hash: 'bb' },
]
const bytes = (seed: string) => createHash('sha256').update(seed).digest()
const SECRET = bytes('secret')

/** context, blind, leaf, empty leaf, top, root */
const VECTOR = [
  'eb1a50e3cb5bd5bf4041ecd7c0c74928d742c823f976019bb658026086f25d67',
  '14b8fefc2a457d51bb79b1f4782baf9177f47a91e4eda505581571aae5cd22b6',
  '280c6801decadd82588c0de42b92432674ad4c773817d28d49b2f617da83af62',
  'a45c9ab3959c99cbc3827eef0c8591cbb7cedf0b497d3fba8368e0b1e7fa3ffb',
  'c22624ef7f7cfe11443e353c3c5bc4f723055d7f45adfa9022a9da95d7d2544b',
  'f12a5eb0c8e64ca77a41bc3af670f7821259d8e817437df18d8b22dc77dc0b8c',
]

interface Owner {
  workspace: string
  sub_account: string
  balance: bigint
}
interface Made {
  statement: Statement
  proofs: ReservesProof[]
}

/** Returns a statement of one asset, and the proof of each owner. */
function made(owners: readonly Owner[], asset = 'BTC', id = ID): Made {
  const leaves = owners
    .map(({ workspace, sub_account: name, balance }, at) => {
      const [secret, nonce] = [secretOf(SECRET, `${at}`), bytes(`nonce ${asset} ${at}`)]
      return {
        ...leafOf(id, asset, blindOf(secret, workspace, name), nonce, balance),
        secret,
        nonce,
        at,
      }
    })
    .sort((a, b) => Buffer.compare(a.hash, b.hash))
  const tree = treeOf(id, asset, leaves)
  const header = {
    asset,
    network: 'BTC',
    leaves: owners.length,
    depth: tree.depth,
    owed: String(tree.top.sum),
    top: tree.top.hash.toString('hex'),
  }
  const entry = {
    ...header,
    decimals: 8,
    held: '0',
    operating: '0',
    overdrawn: '0',
    arriving: '0',
    leaving: '0',
    root: rootOf({ ...header, from: FROM, to: TO, snapshot: id, time: TIME }),
  }
  const statement: Statement = {
    version: 1,
    kind: 'proof-of-reserves',
    id,
    mode: 'local',
    time: TIME,
    networks: [{ network: 'BTC', from: FROM, to: TO }],
    assets: [entry],
    holdings: { addresses: 0, sha256: '00'.repeat(32) },
  }
  const proofs = owners.map(({ workspace, sub_account, balance }, at) => {
    const place = leaves.findIndex((leaf) => leaf.at === at)
    const { secret, nonce } = leaves[place]!
    return {
      snapshot: id,
      workspace,
      sub_account,
      secret: secret.toString('hex'),
      leaves: [
        {
          asset,
          balance: String(balance),
          nonce: nonce.toString('hex'),
          siblings: siblingsOf(tree, place),
        },
      ],
    }
  })
  return { statement, proofs }
}

const verify = (statement: unknown, proof: ReservesProof) =>
  verifyReserves({ published: { statement: canonicalJson(statement), signatures: [] }, proof })
const refused = (error: unknown): boolean =>
  error instanceof VerificationError && error.code === 'RESERVES'
/** Returns the entry with a root that matches the change, as an attacker would compute it. */
function rooted(statement: Statement, change: Partial<Statement['assets'][number]>): Statement {
  const entry = { ...statement.assets[0]!, ...change }
  const { asset, network, leaves, depth, owed, top } = entry
  return {
    ...statement,
    assets: [
      {
        ...entry,
        root: rootOf({
          asset,
          network,
          leaves,
          depth,
          owed,
          top,
          from: FROM,
          to: TO,
          snapshot: statement.id,
          time: TIME,
        }),
      },
    ],
  }
}

const balance = fc.oneof(
  fc.constant(0n),
  fc.bigInt({ min: 0n, max: 10n ** 12n }),
  fc.bigInt({ min: 0n, max: LIMIT / 64n }),
)
const owners = fc
  .array(balance, { minLength: 1, maxLength: 20 })
  .map((balances) =>
    balances.map((each, at) => ({ workspace: `w${at % 3}`, sub_account: `s${at}`, balance: each })),
  )

test('for any balances, every proof verifies, and proves no other balance', async () => {
  await fc.assert(
    fc.asyncProperty(owners, async (all) => {
      const { statement, proofs } = made(all)
      for (const [at, proof] of proofs.entries()) {
        const { proven, short } = await verify(statement, proof)
        assert.deepEqual(proven, [{ asset: 'BTC', decimals: 8, balance: String(all[at]!.balance) }])
        assert.deepEqual(short, all.some((each) => each.balance > 0n) ? ['BTC'] : [])
      }
      assert.equal(
        statement.assets[0]!.owed,
        String(all.reduce((sum, each) => sum + each.balance, 0n)),
      )
    }),
    { numRuns: 60 },
  )
})

test('a proof with any changed field is refused', async () => {
  type Change = (
    statement: Statement,
    proof: ReservesProof,
    step: number,
  ) => [Statement, ReservesProof]
  const flip = (hex: string) => `${hex.slice(0, -1)}${hex.endsWith('0') ? '1' : '0'}`
  const leafed = (proof: ReservesProof, change: Partial<ReservesProof['leaves'][number]>) => ({
    ...proof,
    leaves: [{ ...proof.leaves[0]!, ...change }],
  })
  type Sibling = ReservesProof['leaves'][number]['siblings'][number]
  const sibling = (proof: ReservesProof, step: number, change: (each: Sibling) => Sibling) =>
    leafed(proof, {
      siblings: proof.leaves[0]!.siblings.map((each, at, all) =>
        at === step % all.length ? change(each) : each,
      ),
    })
  const more = (text: string) => String(BigInt(text) + 1n)
  const entry = (statement: Statement, change: Partial<Statement['assets'][number]>) => ({
    ...statement,
    assets: [{ ...statement.assets[0]!, ...change }],
  })
  const changes: Record<string, Change> = {
    balance: (s, p) => [s, leafed(p, { balance: more(p.leaves[0]!.balance) })],
    'balance and owed': (s, p) => [
      rooted(s, { owed: more(s.assets[0]!.owed) }),
      leafed(p, { balance: more(p.leaves[0]!.balance) }),
    ],
    nonce: (s, p) => [s, leafed(p, { nonce: flip(p.leaves[0]!.nonce) })],
    secret: (s, p) => [s, { ...p, secret: flip(p.secret) }],
    name: (s, p) => [s, { ...p, sub_account: `${p.sub_account}x` }],
    workspace: (s, p) => [s, { ...p, workspace: `${p.workspace}x` }],
    'a sibling’s hash': (s, p, step) => [
      s,
      sibling(p, step, (each) => ({ ...each, hash: flip(each.hash) })),
    ],
    'a sibling’s sum': (s, p, step) => [
      s,
      sibling(p, step, (each) => ({ ...each, sum: more(each.sum) })),
    ],
    'a sum moved to the leaf': (s, p) => [
      s,
      sibling(leafed(p, { balance: more(p.leaves[0]!.balance) }), 0, (each) => ({
        ...each,
        sum: String(BigInt(each.sum) - 1n),
      })),
    ],
    side: (s, p, step) => [
      s,
      sibling(p, step, (each) => ({ ...each, side: each.side === 'left' ? 'right' : 'left' })),
    ],
    'a negative sum': (s, p) => [s, sibling(p, 0, (each) => ({ ...each, sum: '-1' }))],
    'a sum of 2^128': (s, p) => [s, sibling(p, 0, (each) => ({ ...each, sum: String(LIMIT) }))],
    'a sum that is no integer': (s, p) => [
      s,
      sibling(p, 0, (each) => ({ ...each, sum: `${each.sum}.0` })),
    ],
    'one sibling less': (s, p) => [s, leafed(p, { siblings: p.leaves[0]!.siblings.slice(1) })],
    'one sibling more': (s, p) => [
      s,
      leafed(p, { siblings: [...p.leaves[0]!.siblings, p.leaves[0]!.siblings[0]!] }),
    ],
    'the asset of the leaf': (s, p) => [s, leafed(p, { asset: 'LTC' })],
    'the asset of both': (s, p) => [rooted(s, { asset: 'LTC' }), leafed(p, { asset: 'LTC' })],
    root: (s, p) => [entry(s, { root: flip(s.assets[0]!.root) }), p],
    top: (s, p) => [entry(s, { top: flip(s.assets[0]!.top) }), p],
    'top and root': (s, p) => [rooted(s, { top: flip(s.assets[0]!.top) }), p],
    'owed alone': (s, p) => [entry(s, { owed: more(s.assets[0]!.owed) }), p],
    'owed and root': (s, p) => [rooted(s, { owed: more(s.assets[0]!.owed) }), p],
    depth: (s, p) => [rooted(s, { depth: s.assets[0]!.depth + 1 }), p],
    count: (s, p) => [entry(s, { leaves: s.assets[0]!.leaves + 1 }), p],
    time: (s, p) => [{ ...s, time: '2026-11-22T10:00:01.000Z' }, p],
    height: (s, p) => [
      { ...s, networks: [{ ...s.networks[0]!, to: { height: 102, hash: 'bb' } }] },
      p,
    ],
    snapshot: (s, p) => [{ ...s, id: ID.replace('7', '8') }, p],
    'both snapshots': (s, p) => [
      rooted({ ...s, id: ID.replace('7', '8') }, {}),
      { ...p, snapshot: ID.replace('7', '8') },
    ],
    'the same asset twice': (s, p) => [s, { ...p, leaves: [...p.leaves, ...p.leaves] }],
    'an unknown field': (s, p) => [{ ...s, note: 'x' } as Statement, p],
  }
  await fc.assert(
    fc.asyncProperty(
      owners,
      fc.nat(),
      fc.constantFrom(...Object.keys(changes)),
      async (all, at, name) => {
        const { statement, proofs } = made(all)
        const [changed, proof] = changes[name]!(statement, proofs[at % proofs.length]!, at)
        await assert.rejects(verify(changed, proof), refused, name)
      },
    ),
    { numRuns: 200 },
  )
  // Applies each change at least once, whatever the seed is.
  const { statement, proofs } = made(
    [5n, 7n, 0n].map((each, at) => ({ workspace: 'w', sub_account: `s${at}`, balance: each })),
  )
  for (const [name, change] of Object.entries(changes))
    await assert.rejects(verify(...change(statement, proofs[0]!, 0)), refused, name)
})

test('two sub-accounts cannot share one leaf, and a proof is valid for its own sub-account only', async () => {
  const { statement, proofs } = made([
    { workspace: 'w', sub_account: 'a', balance: 5n },
    { workspace: 'w', sub_account: 'b', balance: 5n },
  ])
  await assert.rejects(verify(statement, { ...proofs[0]!, sub_account: 'b' }), refused)
  await assert.rejects(
    verify(statement, { ...proofs[0]!, sub_account: 'b', secret: proofs[1]!.secret }),
    refused,
  )
  // Other names with the same concatenated characters do not match the leaf.
  await assert.rejects(
    verify(statement, { ...proofs[0]!, workspace: 'w"', sub_account: '"a' }),
    refused,
  )
})

test('a liability hidden by a negative sum is refused when building and when verifying a tree', async () => {
  const blind = bytes('blind')
  assert.throws(() => leafOf(ID, 'BTC', blind, bytes('nonce'), -5n), RangeError)
  assert.throws(() => leafOf(ID, 'BTC', blind, bytes('nonce'), LIMIT), RangeError)
  const whole = leafOf(ID, 'BTC', blind, bytes('nonce'), LIMIT - 1n)
  assert.throws(() => treeOf(ID, 'BTC', [whole, whole]), RangeError, 'a sum that turns over')
  // The leaves are of an attacker's own implementation: 100 is owed, the sibling is −90 in two's
  // complement, and the stated sum is 10.
  const own = leafOf(ID, 'BTC', blindOf(SECRET, 'w', 'a'), bytes('nonce'), 100n)
  const hidden = { hash: bytes('hidden'), sum: LIMIT - 90n }
  const raw = (sum: bigint) => Buffer.from(sum.toString(16).padStart(32, '0'), 'hex')
  const top = createHash('sha256')
    .update('custody/reserves/node/v1\n')
    .update(own.hash)
    .update(raw(100n))
    .update(hidden.hash)
    .update(raw(hidden.sum))
    .digest('hex')
  const { statement } = made([{ workspace: 'w', sub_account: 'a', balance: 0n }])
  const proof = (sum: string): ReservesProof => ({
    snapshot: ID,
    workspace: 'w',
    sub_account: 'a',
    secret: SECRET.toString('hex'),
    leaves: [
      {
        asset: 'BTC',
        balance: '100',
        nonce: bytes('nonce').toString('hex'),
        siblings: [{ side: 'right', hash: hidden.hash.toString('hex'), sum }],
      },
    ],
  })
  for (const sum of ['-90', String(hidden.sum)])
    await assert.rejects(verify(rooted(statement, { top, owed: '10' }), proof(sum)), refused, sum)
})

test('hashes equal those that this test computes from the text of the document', async () => {
  const sha = (tag: string, ...parts: Buffer[]) =>
    createHash('sha256')
      .update(Buffer.concat([Buffer.from(`custody/reserves/${tag}/v1\n`), ...parts]))
      .digest()
  const uint128 = (value: number) => {
    const all = Buffer.alloc(16)
    all.writeUInt32BE(value, 12)
    return all
  }
  const context = sha('context', Buffer.from(`{"asset":"BTC","snapshot":"${ID}"}`))
  const [secret, nonce] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const blind = createHmac('sha256', secret).update('["acme","main"]').digest()
  const leaf = sha('leaf', context, blind, nonce, uint128(250_000))
  const [other, empty] = [Buffer.alloc(32, 0xff), sha('empty', context)]
  const left = sha('node', leaf, uint128(250_000), other, uint128(7))
  const right = sha('node', empty, uint128(0), empty, uint128(0))
  const top = sha('node', left, uint128(250_007), right, uint128(0))
  const root = sha(
    'root',
    Buffer.from(
      `{"asset":"BTC","depth":2,"from":{"hash":"aa","height":100},"leaves":2,"network":"BTC","owed":"250007","snapshot":"${ID}","time":"${TIME}","to":{"hash":"bb","height":101},"top":"${top.toString('hex')}"}`,
    ),
  )
  // The hashes were computed with Python's hashlib and hmac, and are included in the document.
  assert.deepEqual(
    [context, blind, leaf, empty, top, root].map((each) => each.toString('hex')),
    VECTOR,
  )
  assert.equal(
    leafOf(ID, 'BTC', blindOf(secret, 'acme', 'main'), nonce, 250_000n).hash.toString('hex'),
    leaf.toString('hex'),
  )
  assert.equal(
    rootOf({
      asset: 'BTC',
      network: 'BTC',
      from: FROM,
      to: TO,
      snapshot: ID,
      time: TIME,
      leaves: 2,
      depth: 2,
      owed: '250007',
      top: top.toString('hex'),
    }),
    root.toString('hex'),
  )
  const alone = treeOf(ID, 'BTC', [{ hash: leaf, sum: 250_000n }])
  assert.deepEqual(siblingsOf(alone, 0), [{ side: 'right', hash: empty.toString('hex'), sum: '0' }])
  const base = made([{ workspace: 'w', sub_account: 'a', balance: 0n }]).statement
  const statement = rooted(base, { top: top.toString('hex'), owed: '250007', depth: 2, leaves: 2 })
  const { proven } = await verify(statement, {
    snapshot: ID,
    workspace: 'acme',
    sub_account: 'main',
    secret: secret.toString('hex'),
    leaves: [
      {
        asset: 'BTC',
        balance: '250000',
        nonce: nonce.toString('hex'),
        siblings: [
          { side: 'right', hash: other.toString('hex'), sum: '7' },
          { side: 'right', hash: right.toString('hex'), sum: '0' },
        ],
      },
    ],
  })
  assert.deepEqual(proven, [{ asset: 'BTC', decimals: 8, balance: '250000' }])
})

test('every kind of ledger account belongs to exactly one category of the statement', async () => {
  await installation.started
  const [row] = await installation.get().query<{ check: string }>(
    `select pg_get_constraintdef(oid) "check" from pg_constraint
        where conname = 'ledger_accounts_kind_check'`,
  )
  const kinds = [...(row?.check ?? '').matchAll(/'(\w+)'/g)].map(([, kind]) => kind as string)
  assert.ok(kinds.length > 15, 'the check was found')
  assert.deepEqual(
    [...OWED, ...OWED_TO_NOBODY, ...OPERATING, ...ELSEWHERE].sort(),
    [...new Set(kinds)].sort(),
  )
})

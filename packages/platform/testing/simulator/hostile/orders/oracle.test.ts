import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DecodedTransaction } from '@custody/chains'
import type { Ledger } from './ledgers.ts'
import { execute, judge, judgeToken, type Balances, type Signed } from './oracle.ts'
import type { CallerRequest } from './requests.ts'
import type { Scenario } from './scenario.ts'

const CAP = 100n
const transaction = (fields: Partial<DecodedTransaction>, isBeforeStop = false): Signed => ({
  transaction: { network: 'BTC', raw: JSON.stringify(fields.consumes), hash: '' },
  decoded: {
    asset: 'BTC',
    payments: [],
    fee_max: 0n,
    nonce: null,
    ...fields,
  } as DecodedTransaction,
  isBeforeStop,
  from: 1,
})
const balances = (tank: bigint, one: bigint, two: bigint, sink: bigint): Balances => ({
  owned: new Map([
    [0, tank],
    [1, one],
    [2, two],
  ]),
  foreign: new Map([['sink', sink]]),
})
const BEFORE = balances(1000n, 1000n, 1000n, 0n)
const PAY = { kind: 'pay', subAccount: 1, asset: 'BTC', to: 'sink', units: 10n } as CallerRequest

/** Returns what the oracle finds if balances change from {@link BEFORE}. */
const found = (
  after: Balances,
  scenario: Partial<Scenario>,
  { requests = [], signed = [] }: { requests?: CallerRequest[]; signed?: Signed[] } = {},
): string[] =>
  judge(
    {
      scenario: {
        code: 'BTC',
        token: null,
        mode: 'none',
        isLeaderHostile: false,
        isStoppedLate: false,
        ...scenario,
      },
      native: 'BTC',
      requests,
      signed,
      cap: CAP,
      window: 50n,
      budgetFeeCaps: 4,
    },
    BEFORE,
    after,
  )

test('a payment that its caller requested may be paid once, with a fee up to the cap', () => {
  const requests = [PAY]
  // A quarter of the budget of four caps may also be spent on sweeps by each sub-account.
  assert.deepEqual(found(balances(1000n, 790n, 900n, 10n), {}, { requests }), [])
  assert.deepEqual(found(balances(1000n, 790n, 900n, 11n), {}, { requests }), [
    'sink received 11, and 10 are allowed',
  ])
  assert.deepEqual(found(balances(1000n, 990n, 1000n, 10n), {}, {}), [
    'sink received 10, and 0 are allowed',
  ])
  assert.deepEqual(
    found(balances(1000n, 980n, 1000n, 20n), { isLeaderHostile: true }, { requests }),
    [],
  )
})

test('under a rule that denies everything, and under a stop, no coin leaves', () => {
  const requests = [PAY]
  for (const mode of ['deny', 'stop'] as const)
    assert.deepEqual(found(balances(1000n, 989n, 1000n, 10n), { mode }, { requests }), [
      'sink received 10, and 0 are allowed',
      ...(mode === 'stop' ? ['1 were burnt, and 0 are allowed'] : []),
    ])
  assert.deepEqual(found(balances(999n, 1000n, 1000n, 0n), { mode: 'stop' }), [
    '1 were burnt, and 0 are allowed',
    'the gas tank lost 1, and 0 are allowed',
  ])
})

test('what was signed before a stop may be included, or replaced at a quarter more', () => {
  const payments = [{ address: 'sink', amount: 10n, tag: null }]
  const signed = [transaction({ payments, fee_max: 40n, consumes: ['a'] }, true)]
  const scenario = { mode: 'stop', isStoppedLate: true } as const
  assert.deepEqual(found(balances(1000n, 950n, 1000n, 10n), scenario, { signed }), [])
  assert.deepEqual(found(balances(1000n, 950n, 1000n, 0n), scenario, { signed }), [])
  assert.deepEqual(found(balances(1000n, 949n, 1000n, 0n), scenario, { signed }), [
    '51 were burnt, and 50 are allowed',
  ])
})

test('a window limits what a sub-account loses; rules about own addresses what it receives', () => {
  const requests = [{ ...PAY, units: 200n }]
  assert.deepEqual(found(balances(1000n, 850n, 1000n, 150n), { mode: 'window' }, { requests }), [])
  assert.deepEqual(found(balances(1000n, 849n, 1000n, 150n), { mode: 'window' }, { requests }), [
    'sub-account 1 lost 151, and its window allows 150',
  ])
  assert.deepEqual(found(balances(1000n, 999n, 1001n, 0n), { mode: 'own' }, { requests }), [
    'sub-account 2 received 1, which the policy denies',
  ])
})

test('of transactions that exclude each other the block builder includes the dearest', async () => {
  const sent: string[] = []
  const ledger = {
    broadcast: async (raw: string) => {
      sent.push(raw)
      return { kind: 'accepted' }
    },
    mine: async () => {},
  } as unknown as Ledger
  const to = (address: string, amount: bigint) => [{ address, amount, tag: null }]
  const signed = [
    transaction({ consumes: ['a', 'b'], fee_max: 10n }),
    transaction({ consumes: ['a'], fee_max: 5n, payments: to('sink', 6n) }),
    transaction({ consumes: ['b'], fee_max: 1n, payments: to('own', 100n) }),
    transaction({ consumes: ['c'], fee_max: 1n, nonce: 1n }),
    transaction({ consumes: ['d'], fee_max: 9n, nonce: 2n }),
  ]
  assert.equal(await execute(ledger, signed, new Set(['own'])), 4)
  assert.deepEqual(sent, ['["a"]', '["b"]', '["c"]', '["d"]'])
})

const TOKEN = 'USDT_ETH'
const TOKEN_PAY = { ...PAY, asset: TOKEN } as CallerRequest
/** Returns what the oracle finds if balances of a token change from {@link BEFORE}. */
const foundToken = (
  after: Balances,
  scenario: Partial<Scenario>,
  requests: CallerRequest[] = [TOKEN_PAY],
  signed: Signed[] = [],
): string[] => {
  const common = {
    code: 'ETH',
    token: TOKEN,
    isLeaderHostile: false,
    isStoppedLate: false,
  } as const
  return judgeToken(
    {
      scenario: { ...common, mode: 'none', ...scenario },
      native: 'ETH',
      requests,
      signed,
      cap: CAP,
      window: 50n,
      budgetFeeCaps: 4,
    },
    TOKEN,
    BEFORE,
    after,
  )
}

test('a payment of a token may be paid once, from the sub-account of its caller, and without a loss', () => {
  assert.deepEqual(foundToken(balances(1000n, 990n, 1000n, 10n), {}), [])
  assert.equal(foundToken(balances(1000n, 989n, 1000n, 11n), {}).length, 2)
  assert.deepEqual(foundToken(balances(1000n, 1000n, 990n, 10n), {}), [
    `sub-account 2 lost 10 ${TOKEN}, and 0 are allowed`,
  ])
  assert.equal(foundToken(balances(1000n, 989n, 1000n, 10n), {}).length, 1, 'a token was burnt')
  assert.deepEqual(foundToken(balances(1000n, 980n, 1000n, 20n), { isLeaderHostile: true }), [])
  // A request of the native coin permits no token.
  assert.equal(foundToken(balances(1000n, 990n, 1000n, 10n), {}, [PAY]).length, 2)
})

test('no token leaves under a denial, a stop, or a window that does not name it', () => {
  for (const mode of ['deny', 'stop', 'window'] as const)
    assert.equal(foundToken(balances(1000n, 990n, 1000n, 10n), { mode }).length, 2, mode)
  const early = transaction(
    { asset: TOKEN, payments: [{ address: 'sink', amount: 10n, tag: null }] },
    true,
  )
  assert.deepEqual(foundToken(balances(1000n, 990n, 1000n, 10n), { mode: 'stop' }, [], [early]), [])
})

test('under a rule against crossings, no sub-account receives a token from another', () => {
  const crossing = { ...TOKEN_PAY, to: 'two' } as CallerRequest
  const after = balances(1000n, 990n, 1010n, 0n)
  assert.deepEqual(foundToken(after, {}, [crossing]), [])
  assert.deepEqual(foundToken(after, { mode: 'own' }, [crossing]), [
    `sub-account 2 received 10 ${TOKEN}, which the policy denies`,
  ])
})

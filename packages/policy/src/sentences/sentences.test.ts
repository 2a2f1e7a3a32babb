// Rules, facts and statements as sentences.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { ruleList } from '../../testing/arbitraries.ts'
import { actWith, allow, NOW, policyWith } from '../../testing/documents.ts'
import { registry } from '../../testing/registry.ts'
import { statementsOf } from '../../testing/statements.ts'
import type { Act } from '../act.ts'
import type { Rule } from '../document/rules.ts'
import { factsOf } from '../facts.ts'
import { governanceSentences } from './governance-sentence.ts'
import { ruleSentence } from './rule-sentence.ts'
import { actSentences, statementSentences } from './statement-sentence.ts'
import { quote } from './words.ts'

const sentences = (fields: Partial<Act>) => {
  const act = actWith(fields)
  return actSentences(act.action, factsOf(act, registry))
}

test('states a transfer with whole address, tag, contract and largest fee', () => {
  assert.deepEqual(sentences({}), [
    'Transfer 0.1 BTC from sub-account "main" to bc1qpayee without tag on BTC.',
    'The fee is at most 0.0005 BTC.',
  ])
  assert.deepEqual(
    sentences({
      asset: 'USDT_ETH',
      network: 'ETH',
      amount: 1_500_001n,
      to: { address: '0x71C7656EC7ab88b098defB751B7401B5f6d8976F', tag: '77', own: null },
    }),
    [
      'Transfer 1.500001 USDT_ETH from sub-account "main" to 0x71C7656EC7ab88b098defB751B7401B5f6d8976F with tag "77" on ETH.',
      'USDT_ETH is the token of the contract 0xdAC17F958D2ee523a2206206994597C13D831ec7.',
      'The fee is at most 0.00000000000005 ETH.',
    ],
  )
})

test('states a forward with its limits and its end, and a stake with its resource', () => {
  assert.deepEqual(
    sentences({
      action: 'forward',
      standing: { min_amount: 1_000_000n, daily_cap: 200_000_000n, ends_at: NOW },
    }),
    [
      'Forward incoming BTC from sub-account "main" to bc1qpayee without tag on BTC.',
      'Each forward moves at least 0.01 BTC, and all forwards of 24 hours at most 2 BTC, until 2030-03-17T17:46:40Z.',
    ],
  )
  assert.match(
    sentences({ action: 'stake', resource: 'ENERGY' })[0] ?? '',
    /^Stake 0\.1 BTC for ENERGY/,
  )
})

test('facts do not change with the transactions of an act', () => {
  const facts = (max: bigint) => factsOf(actWith({ fee: { max, limit: 50_000n } }), registry)
  assert.deepEqual(facts(1n), facts(50_000n))
})

test('names that others have chosen cannot imitate the rest of a sentence', () => {
  assert.equal(quote('main" to bc1qevil'), String.raw`"main\u{22} to bc1qevil"`)
  assert.equal(
    quote('a\u202eb\u200bc\u2066d\ufeffe\u00a0f\u2028g\\'),
    String.raw`"a\u{202e}b\u{200b}c\u{2066}d\u{feff}e\u{a0}f\u{2028}g\u{5c}"`,
  )
  assert.equal(quote('Zoë 日本 1/2'), '"Zoë 日本 1/2"')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 50 }), (text) => {
      const quoted = quote(text)
      assert.match(quoted, /^"[^"\p{C}]*"$/u)
    }),
  )
})

test('quoted names are different if the names are', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) =>
      assert.equal(quote(a) === quote(b), a === b),
    ),
  )
})

test('states rules in plain English', () => {
  for (const [rule, sentence] of [
    [
      allow('small', {
        match: {
          action: ['transfer', 'refund'],
          assets: ['BTC', 'USDT_ETH'],
          sub_accounts: ['main'],
          to: { addresses: [{ network: 'XRP', address: 'rPayee', tag: '7' }], own: 'workspace' },
        },
        amount: { max: { BTC: '0.5', USDT_ETH: '10000' } },
        fee_max: { BTC: '0.0005' },
        windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { BTC: '2' }, count: 500 }],
        approvals: [
          { group: 'treasury', k: 2 },
          { group: 'admins', k: 1 },
        ],
        approval_s: 5_400,
      }),
      'small: Allow transfers and refunds of BTC or USDT_ETH from sub-account "main" to rPayee on XRP with tag "7" or own addresses of the workspace, of at most 0.5 BTC or 10000 USDT_ETH, with a fee of at most 0.0005 BTC, up to 2 BTC and 500 acts in 24 hours per sub-account, with the approvals of 2 of treasury and 1 of admins within 90 minutes.',
    ],
    [
      {
        id: 'travel',
        effect: 'require',
        match: { assets: ['BTC'], sub_accounts_not: { prefix: 'cust-' } },
        amount: { min: { BTC: '1' } },
        approvals: [{ group: 'compliance', k: 1 }],
        initiator: true,
      },
      'travel: Require the approvals of 1 of compliance within 24 hours, the requester included for every act of BTC except from sub-accounts that begin with "cust-", of at least 1 BTC.',
    ],
    [
      {
        id: 'no',
        effect: 'deny',
        match: { to: { addresses: [{ network: 'XRP', address: 'rX' }] } },
      },
      'no: Deny every act to rX on XRP with any tag.',
    ],
    [
      {
        id: 'cap',
        effect: 'limit',
        match: { assets: ['BTC'] },
        windows: [{ name: 'day', hours: 24, per: 'workspace', max: { BTC: '50' } }],
        above: 'deny',
      },
      'cap: Limit every act of BTC to 50 BTC in 24 hours in the workspace (of which one sub-account may use 0.25); above that, deny the act.',
    ],
  ] as [Rule, string][])
    assert.equal(ruleSentence(rule), sentence)
})

test('different rules have different sentences', () => {
  const seen = new Map<string, string>()
  const strip = (rule: Rule): string =>
    JSON.stringify(rule, (key, value: unknown) => {
      if (key === 'initiator' && value === false) return undefined
      if ((key === 'assets' || key === 'to') && value === 'any') return undefined
      if (key === 'approval_s' && value === 86_400) return undefined
      if (key === 'share' && value === '0.25') return undefined
      // The name of a window is no part of its meaning, except in what it has counted.
      return key === 'name' ? undefined : value
    })
  fc.assert(
    fc.property(ruleList, (rules) => {
      for (const rule of rules.filter(
        ({ match }) => match.assets !== 'any' && match.to !== 'any',
      )) {
        const [sentence, text] = [ruleSentence(rule), strip(rule)]
        assert.match(sentence, /^[a-z]+: (?:Allow|Require|Deny|Limit) [^\n]*\.$/)
        assert.equal(seen.get(sentence) ?? text, text)
        seen.set(sentence, text)
      }
    }),
    { numRuns: 500 },
  )
})

test('states every kind of statement with workspace and times', () => {
  const statements = statementsOf(policyWith([]))
  const texts = Object.values(statements).map((each) => statementSentences(each).join(' '))
  for (const text of texts) {
    assert.match(text, /Workspace "acme", mode mainnet\./)
    assert.doesNotMatch(text, /undefined|null|\[object/)
  }
  assert.equal(new Set(texts).size, texts.length)
  assert.deepEqual(statementSentences(statements.stop), [
    'alice stops all signing for the whole workspace. Reason: "A key was stolen".',
    'Workspace "acme", mode mainnet.',
    'Signed at 2030-03-17T17:46:35Z, valid until 2030-03-17T18:46:40Z.',
  ])
  assert.match(statementSentences(statements.approval)[0] ?? '', /alice approves the following/)
  const reject = { ...statements.approval, decision: 'reject' } as typeof statements.approval
  assert.match(statementSentences(reject)[0] ?? '', /alice rejects the following/)
})

test('states who may change the document, stop and resume, and what operators may not do alone', () => {
  const quorum = (group: string, k: number) => ({ approvals: [{ group, k }] })
  const { document } = policyWith([], {
    change: { ...quorum('admins', 2), delay_s: 172_800, veto: 'treasury' },
    stop: { group: 'treasury' },
    resume: {
      approvals: [
        { group: 'admins', k: 1 },
        { group: 'treasury', k: 2 },
      ],
    },
    enrolment: quorum('admins', 1),
    orders: quorum('treasury', 2),
  })
  assert.deepEqual(governanceSentences(document), [
    'A change of the policy requires 2 of admins and waits 48 hours. Each member of treasury can veto it.',
    'Each member of treasury can stop all signing. The end of a stop requires 1 of admins and 2 of treasury.',
    'The enrolment of an API key requires 1 of admins.',
    'A drain or a stake of a gas tank requires 2 of treasury.',
  ])
  const plain = policyWith([], { change: { ...quorum('admins', 2), delay_s: 0, veto: 'admins' } })
  const [first, ...others] = governanceSentences(plain.document)
  assert.match(first!, /requires 2 of admins and is in force at once\. /)
  assert.equal(others.length, 1)
  assert.equal(
    governanceSentences(policyWith([], { fees: 'wallet' }).document).at(-1),
    'Fees that a gas tank pays count in no window.',
  )
})

import { interleaved, report } from '../../../testing/figures.ts'
import { actWith, allow, approvalsOf, contextWith, documentWith } from '../testing/documents.ts'
import { registry } from '../testing/registry.ts'
import {
  chargesOf,
  checkDocument,
  compile,
  evaluate,
  type EvaluationContext,
  type Use,
} from '../src/index.ts'

/**
 * Measures one evaluation of a document with 500 rules: `node bench/evaluate.bench.ts [evaluations
 * per round] [rounds]`. The floor is a loop over the 500 rules that makes one lookup and one
 * comparison for each.
 */
const [count, rounds] = [Number(process.argv[2] ?? 200), Number(process.argv[3] ?? 9)]
const TARGET_MS = 1

const windows = [
  { name: 'day', hours: 24, per: 'sub_account', max: { BTC: '20' }, count: 5_000 },
  { name: 'week', hours: 168, per: 'api_key', max: { BTC: '100' } },
]
/** Every fourth rule needs approvals, and every fourth has windows; one in twenty matches the act. */
const allows = Array.from({ length: 480 }, (_, at) =>
  allow(`rule-${at}`, {
    match: {
      action: ['transfer', 'refund'],
      assets: ['BTC', 'ETH'],
      sub_accounts: at % 20 === 0 ? ['main', `team-${at}`] : [`team-${at}`],
      to: { addresses: [{ network: 'BTC', address: at % 20 === 0 ? 'bc1qpayee' : `bc1q${at}` }] },
    },
    amount: { max: { BTC: '0.5', ETH: '10' } },
    fee_max: { BTC: '0.001', ETH: '0.1' },
    ...(at % 4 === 0 ? { windows } : {}),
    ...(at % 4 === 1 || at === 20 ? { approvals: [{ group: 'treasury', k: 2 }] } : {}),
  }),
)
const others = [
  ...Array.from({ length: 6 }, (_, at) => ({
    id: `limit-${at}`,
    effect: 'limit',
    match: { assets: ['BTC'] },
    windows: [{ name: 'day', hours: 24, per: 'workspace', share: '1', max: { BTC: '500' } }],
    above: 'deny',
  })),
  ...Array.from({ length: 7 }, (_, at) => ({
    id: `require-${at}`,
    effect: 'require',
    match: { assets: ['BTC'] },
    amount: { min: { BTC: `${at + 1}` } },
    approvals: [{ group: 'compliance', k: 1 }],
  })),
  ...Array.from({ length: 7 }, (_, at) => ({
    id: `deny-${at}`,
    effect: 'deny',
    match: { to: { addresses: [{ network: 'BTC', address: `bc1qdenied${at}` }] } },
  })),
]
const document = checkDocument(documentWith([...allows, ...others]))
const policy = compile(document, registry)
const act = actWith()

/** One hundred steps in each window. */
const uses: Use[] = Array.from({ length: 100 }, (_, at) => ({
  step: `step-${at + 2}`,
  age_s: at * 600,
  amounts: new Map([['BTC', 1_000_000n]]),
}))
const context: EvaluationContext = contextWith({
  usesOf: () => uses,
  approvals: approvalsOf('dan', 'erin'),
})

/** Returns the milliseconds of processor time of one call. */
const timed = (call: () => void) => async (): Promise<number> => {
  const begun = process.cpuUsage()
  for (let at = 0; at < count; at++) call()
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1000 / count
}
const sets = document.rules.map(({ id }) => new Set([id]))
const limits = document.rules.map((_, at) => BigInt(at) * 10n ** 6n)
let fitting = 0
const floor = () => {
  for (const [at, set] of sets.entries())
    if (set.has(act.sub_account) && act.amount <= (limits[at] as bigint)) fitting++
}

const result = evaluate(policy, act, context)
if (result.effect !== 'allow') throw new Error(`the act is not allowed: ${result.effect}`)
const measured = await interleaved(rounds, {
  floor: timed(floor),
  evaluate: timed(() => evaluate(policy, act, context)),
  charges: timed(() => chargesOf(policy, act, result.via ?? '')),
  compile: timed(() => {
    if (fitting >= 0) compile(document, registry)
  }),
})
const rulesText = `${document.rules.length} rules, ${result.windows.length} readings of windows`
report({
  name: 'evaluate an act, against a bare loop',
  unit: 'ms',
  value: measured.evaluate,
  floor: measured.floor,
  note: rulesText,
})
report({
  name: 'evaluate an act',
  unit: 'ms',
  value: measured.evaluate,
  floor: null,
  target: { atMost: TARGET_MS },
  note: rulesText,
})
report({
  name: 'list the charges of an act',
  unit: 'ms',
  value: measured.charges,
  floor: measured.floor,
})
report({ name: 'compile a document', unit: 'ms', value: measured.compile, floor: measured.floor })

// Command line of the fuzzer (docs/fuzzing.md): `npm run fuzz -- --target chains|nodes|api
// --minutes M --seed S`.
import { parseArgs } from 'node:util'
import { fuzz, type Order } from './run.ts'

const USAGE =
  'Usage: npm run fuzz -- --target chains|nodes|api [--minutes M] [--seed S] [--from CASE] [--count CASES]'
const TARGETS: Record<string, (order: Order) => Promise<Awaited<ReturnType<typeof fuzz>>>> = {
  async chains(order) {
    const { chains } = await import('./chains.ts')
    return fuzz(order, chains)
  },
  async nodes(order) {
    const { Nodes } = await import('./nodes.ts')
    const nodes = new Nodes()
    try {
      await nodes.open()
      order.say(`calls that were right, of: ${nodes.paths.join(', ')}`)
      return await fuzz(order, (random, count) => nodes.play(random, count))
    } finally {
      await nodes.close()
    }
  },
  async api(order) {
    const { Api } = await import('./api.ts')
    const api = new Api()
    try {
      await api.open()
      order.say(`${api.count} operations of docs/openapi.json`)
      return await fuzz(order, (random, count) => api.play(random, count))
    } finally {
      await api.close()
    }
  },
}

function number(name: string, text: string): number {
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text)
  console.error(`--${name}: "${text}" is not a number. ${USAGE}`)
  return process.exit(2)
}

function options() {
  try {
    return parseArgs({
      options: {
        target: { type: 'string', default: 'chains' },
        minutes: { type: 'string', default: '1' },
        seed: { type: 'string', default: '1' },
        from: { type: 'string', default: '0' },
        count: { type: 'string' },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}. ${USAGE}`)
    return process.exit(2)
  }
}

const values = options()
const run = Object.hasOwn(TARGETS, values.target) ? TARGETS[values.target] : undefined
if (!run) {
  console.error(`--target: "${values.target}" is none. ${USAGE}`)
  process.exit(2)
}
const begun = Date.now()
const { played, finds, kinds } = await run({
  seed: number('seed', values.seed),
  minutes: number('minutes', values.minutes),
  from: number('from', values.from),
  count: values.count === undefined ? null : number('count', values.count),
  say: (line) => console.log(line),
})
for (const [kind, count] of [...kinds].sort(([, a], [, b]) => b - a))
  console.log(`${String(count).padStart(9)}  ${kind}`)
console.log(
  `${values.target}, seed ${values.seed}: ${played} cases in ${Math.round((Date.now() - begun) / 1000)} s, ${finds} finds`,
)
process.exit(finds > 0 || played === 0 ? 1 : 0)

import { median, percentile, report } from '../../../testing/figures.ts'
import { DOCUMENT_EXAMPLE } from '../src/custody/policies/shapes.ts'
import { call, sleep, TestPlatform, transferBody, type User } from '../testing/harness.ts'
import { signAll, timed, type Ask, type Signed } from './load.ts'

const RULES = 100
const PAST = 130
/** Requests of each heavy kind that the other workspace has open at any time. */
const AT_ONCE = 30
const READS = 100
const REFUSED_PAUSE_MS = 1000
const TO = '0x00000000000000000000000000000000000000be'

/** Keeps requests of a workspace open until `end` is called, whatever is answered to them. */
function occupy(base: string, asks: readonly Ask[]): { end(): Promise<Map<number, number>> } {
  const statuses = new Map<number, number>()
  let isEnded = false
  const send = async (ask: Ask): Promise<void> => {
    while (!isEnded) {
      const [{ method, path, headers, body }] = (await signAll([ask])) as [Signed]
      // The server may close the connection of a refused request while the next one is being sent.
      const status = await fetch(`${base}${path}`, { method, headers, body }).then(
        async (response) => {
          await response.arrayBuffer()
          return response.status
        },
        () => 0,
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // Signatures of refused requests would take the load generator's processor from the reads.
      if (status !== 200) await sleep(REFUSED_PAUSE_MS)
    }
  }
  const all = Promise.all(asks.flatMap((ask) => Array.from({ length: AT_ONCE }, () => send(ask))))
  return {
    end: async () => {
      isEnded = true
      await all
      return statuses
    },
  }
}

/**
 * Measures a request of one workspace alone, and beside another workspace whose key simulates and
 * evaluates policies and asks exchanges for prices without a pause.
 * @param heavy its workspace and sub-account have coins
 */
export async function measureHeavyNeighbour(
  platform: TestPlatform,
  heavy: User,
  quiet: User,
  workspace: string,
): Promise<void> {
  for (let n = 0; n < PAST; n++) {
    const body = transferBody('ETH', '0.0001', TO, { sequence_id: `neighbour-${n}` })
    const { status, text } = await call(heavy, 'POST', '/dac/v1/transaction', body)
    if (status !== 200) throw new Error(text)
  }
  const [rule] = DOCUMENT_EXAMPLE.rules
  const document = {
    ...DOCUMENT_EXAMPLE,
    workspace,
    rules: Array.from({ length: RULES }, (_, n) => ({ ...rule, id: `rule-${n}` })),
  }
  const post = (path: string, body: object): Ask => ({
    apiKey: heavy.apiKey,
    method: 'POST',
    path: `/dac/v1/${path}`,
    body: JSON.stringify(body),
  })
  const asks = [
    post('policy/simulate', { document }),
    post('policy/evaluate', {
      method: 'POST',
      uri: '/dac/v1/transaction',
      body: JSON.parse(transferBody('ETH', '0.0001', TO)) as object,
    }),
    post('conversions/quote', { from: 'BTC', to: 'ETH', amount: '1' }),
  ]
  const read = async (): Promise<number[]> => {
    const took: number[] = []
    const ask: Ask = { apiKey: quiet.apiKey, method: 'GET', path: '/dac/v1/wallets?asset=ETH' }
    for (let n = 0; n < READS; n++)
      took.push(await timed(platform.base, ((await signAll([ask])) as [Signed])[0]))
    return took
  }
  await read()
  const [alone, beside]: [number[], number[]] = [[], []]
  const statuses: string[] = []
  for (let round = 0; round < 3; round++) {
    alone.push(...(await read()))
    const load = occupy(platform.base, asks)
    beside.push(...(await read()))
    statuses.push(
      [...(await load.end())]
        .sort(([a], [b]) => a - b)
        .map(([status, count]) => `${status}: ${count}`)
        .join(', '),
    )
  }
  report({
    name: `GET beside ${AT_ONCE} simulations, evaluations and quotes of another workspace, p50`,
    unit: 'ms',
    value: median(beside),
    floor: median(alone),
    target: { atMost: 2 },
    note: `p99 ${percentile(beside, 0.99).toFixed(1)} ms against ${percentile(alone, 0.99).toFixed(1)} ms; answers of the last round ${statuses.at(-1)}`,
  })
}

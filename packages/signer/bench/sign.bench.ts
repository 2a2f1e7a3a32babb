import { ETH, eth, House, pay, SINK_ETH, transfer, type Caller } from '../test/house.ts'
import type { SignedRequest } from '@custody/request-auth'

/** Signatures per second through three real nodes: `node bench/sign.bench.ts [count] [concurrency]`. Requests are signed before the clock runs. */
const [count, concurrency] = [Number(process.argv[2] ?? 300), Number(process.argv[3] ?? 8)]
const house = await House.start()
try {
  const workspace = await house.workspace()
  const callers: Caller[] = []
  for (let at = 0; at < concurrency; at++) callers.push(await workspace.caller(at + 1))
  const per = Math.ceil(count / concurrency)
  const work: { request: SignedRequest; nonce: number }[][] = []
  for (const caller of callers) {
    const list: { request: SignedRequest; nonce: number }[] = []
    for (let nonce = 0; nonce < per; nonce++) list.push({ request: await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }), nonce })
    work.push(list)
  }
  const pairs = [[1, 2], [2, 3], [3, 1]] as const
  const times: number[] = []
  const begun = performance.now()
  await Promise.all(work.map(async (list, at) => {
    for (const { request, nonce } of list) {
      const one = performance.now()
      const { status, body } = await workspace.sign(pay(request), eth([at + 1, ETH.chain_index, 0], { value: 10n ** 18n, nonce }), pairs[at % 3]!)
      if (status !== 200) throw new Error(JSON.stringify(body))
      times.push(performance.now() - one)
    }
  }))
  const seconds = (performance.now() - begun) / 1000
  times.sort((a, b) => a - b)
  process.stdout.write(`${JSON.stringify({ curve: 'secp256k1', signatures: times.length, concurrency, per_second: Number((times.length / seconds).toFixed(1)), median_ms: Number(times[times.length >> 1]!.toFixed(1)), p95_ms: Number(times[Math.floor(times.length * 0.95)]!.toFixed(1)) })}\n`)
} finally {
  await house.stop()
}

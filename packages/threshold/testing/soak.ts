// Long test to be run by hand before a release: node packages/threshold/testing/soak.ts
// [signatures] Creates five thousand signatures per curve over all pairs and random paths, verifies
// each with noble, and refreshes after every thousand. Prints its measurements; exits non-zero at
// the first failure.
import { randomBytes, randomInt } from 'node:crypto'
import { cpus } from 'node:os'

import { engines } from '../src/index.ts'
import {
  complete,
  isValid,
  keygenSessions,
  openVaults,
  PAIRS,
  refreshSessions,
  signSessions,
} from './helpers.ts'

const total = Number(process.argv[2] ?? 10_000)
const IN_FLIGHT = cpus().length
const REFRESH_EVERY = 1000

const vaults = await openVaults()
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${total} signatures`)

async function measured<T>(what: string, work: () => Promise<T>): Promise<T> {
  const [started, cpu] = [performance.now(), process.cpuUsage()]
  const result = await work()
  const used = process.cpuUsage(cpu)
  const seconds = (performance.now() - started) / 1000
  console.log(
    `  ${what}: ${seconds.toFixed(3)} s, ${((used.user + used.system) / 1e6).toFixed(3)} s of CPU`,
  )
  return result
}

for (const curve of ['secp256k1', 'ed25519'] as const) {
  console.log(`${curve} (${engines[curve].id} ${engines[curve].version})`)
  let keys = await measured('key generation, three parties', () =>
    complete(keygenSessions(vaults, curve)),
  )
  const count = Math.floor(total / 2)
  let [busy, signed] = [0, 0]
  const latencies: number[] = []

  for (let done = 0; done < count; done += REFRESH_EVERY) {
    const batch = Math.min(REFRESH_EVERY, count - done)
    const finished: (() => boolean)[] = []
    let next = 0
    const started = performance.now()
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async () => {
        while (next < batch) {
          const pair = PAIRS[next++ % 3]!
          const path = Array.from({ length: randomInt(0, 4) }, () => randomInt(0, 2 ** 31))
          const message = new Uint8Array(randomBytes(32))
          const from = performance.now()
          const results = await complete(signSessions(vaults, keys, pair, path, message))
          latencies.push(performance.now() - from)
          const key = keys.get(pair[0])!
          finished.push(() =>
            [...results.values()].every((result) => isValid(curve, key, path, message, result)),
          )
        }
      }),
    )
    busy += performance.now() - started
    // Verified outside the measured time, which already includes the nodes' own checks.
    for (const valid of finished) {
      if (!valid()) throw new Error(`${curve}: noble refuses a signature`)
      signed += 1
    }
    const before = keys
    keys = await complete(refreshSessions(vaults, keys))
    for (const [party, key] of keys) {
      if (!Buffer.from(key.publicKey).equals(before.get(party)!.publicKey))
        throw new Error('the refresh changed the key')
    }
  }
  latencies.sort((a, b) => a - b)
  const at = (q: number) => latencies[Math.floor(q * (latencies.length - 1))]?.toFixed(2)
  console.log(
    `  ${signed} signatures, all valid: ${((signed * 1000) / busy).toFixed(0)}/s, both parties in this process, ` +
      `${IN_FLIGHT} at a time; latency p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  )
  await measured('refresh, three parties', () => complete(refreshSessions(vaults, keys)))
}

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { ThresholdError } from './index.ts'
import type { Curve } from './index.ts'
import { CHEATS, roundOf, tamper, type Switch } from '../testing/cheating.ts'
import {
  carry,
  complete,
  keygenSessions,
  openVaults,
  PARTIES,
  refreshSessions,
} from '../testing/helpers.ts'
import type { Keys, Vaults } from '../testing/helpers.ts'

/**
 * One party cheats in key generation or refresh, in each way that `cheating.ts` knows. Private
 * parts: `native/src/dkls/forged.rs`.
 */
let vaults: Vaults
const keys = {} as Record<Curve, Keys>

before(async () => {
  vaults = await openVaults()
  for (const curve of ['secp256k1', 'ed25519'] as const)
    keys[curve] = await complete(keygenSessions(vaults, curve))
})

/**
 * Returns pairs of cheats with the same round and result. A run of three parties takes seconds, and
 * each of the two other parties can be the victim of another cheat.
 */
function inTwos(switches: readonly Switch[]): (readonly [Switch, Switch])[] {
  const groups = new Map<string, Switch[]>()
  for (const each of switches) {
    const name = `${roundOf(each)} ${each.expected}`
    groups.set(name, [...(groups.get(name) ?? []), each])
  }
  return [...groups.values()].flatMap((all) =>
    all.filter((_, at) => at % 2 === 0).map((each, at) => [each, all[at * 2 + 1] ?? each] as const),
  )
}

for (const curve of ['secp256k1', 'ed25519'] as const) {
  for (const [protocol, cheat] of [
    ['keygen', 1],
    ['refresh', 3],
  ] as const) {
    test(`${curve}: each cheat of party ${cheat} in ${protocol === 'keygen' ? 'key generation' : 'a refresh'} has the expected result`, async () => {
      const [first, second] = PARTIES.filter((party) => party !== cheat) as [number, number]
      const wrong: string[] = []
      for (const pair of inTwos(CHEATS[`${curve}/${protocol}`])) {
        const sessions =
          protocol === 'keygen'
            ? keygenSessions(vaults, curve)
            : refreshSessions(vaults, keys[curve])
        const { results, errors } = await carry(sessions, ({ from, to, round, payload }) => {
          const each = pair[to === first ? 0 : 1]
          if (from !== cheat || round !== roundOf(each)) return [{ from, payload }]
          return [
            { from, payload: tamper(payload, each.cheat({ received: payload, other: payload })) },
          ]
        })
        for (const [each, victim] of [
          [pair[0], first],
          [pair[1], second],
        ] as const) {
          const error = errors.get(victim)
          const end =
            error instanceof ThresholdError
              ? error.code
              : error === undefined && results.has(victim)
                ? 'finished'
                : 'nothing'
          const text = error instanceof Error ? error.message : ''
          assert.doesNotMatch(text, /panic/, each.name)
          if (end !== each.expected)
            wrong.push(`${each.name}: ${end} instead of ${each.expected} (${text})`)
        }
      }
      assert.deepEqual(wrong, [])
    })
  }
}

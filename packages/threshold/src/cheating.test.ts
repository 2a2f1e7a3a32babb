import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, test } from 'node:test'
import { startSign, ThresholdError, Vault } from './index.ts'
import type { Curve, KeyMaterial, Session, SignResult } from './index.ts'
import { CHEATS, roundOf, tamper } from '../testing/cheating.ts'
import {
  carry,
  complete,
  forge,
  isValid,
  keygenSessions,
  PARTIES,
  refreshSessions,
  sessionId,
  signAndCheck,
} from '../testing/helpers.ts'
import type { Keys, Vaults } from '../testing/helpers.ts'
import { correlationOf, openShare, shiftedShare, type SealingKey } from '../testing/opened-share.ts'

/**
 * One party cheats with a real engine, in each way that `cheating.ts` defines. A node acts
 * according to the code with which its own side ends.
 */
const sealing: SealingKey = { name: 'c0ffee'.padEnd(16, '0'), key: randomBytes(32) }
const PATH = [3, 1]
const DIGEST = new Uint8Array(randomBytes(32))
const vaults: Vaults = new Map()
const keys = {} as Record<Curve, Keys>

before(async () => {
  for (const party of PARTIES) {
    const named = { name: sealing.name!, key: sealing.key }
    vaults.set(party, await Vault.open({ kind: 'keys', keys: [named] }))
  }
  for (const curve of ['secp256k1', 'ed25519'] as const)
    keys[curve] = await complete(keygenSessions(vaults, curve))
})

interface Role {
  cheat: number
  honest: number
}
const ROLES: Role[] = [
  { cheat: 1, honest: 2 },
  { cheat: 2, honest: 1 },
]

/** The end of the honest side's session. */
interface End {
  code: string
  result: SignResult | null
  round: number
  counterparty: number | null
  text: string
}
/** Returns the message that the cheating party sends in a round; null: the original one. */
type Change = (said: {
  round: number
  payload: Uint8Array
  received: Uint8Array
  before: Uint8Array | null
}) => Uint8Array[] | null

const sessionOf = (
  key: KeyMaterial,
  { cheat, honest }: Role,
  id: Uint8Array,
  digest = DIGEST,
): Session<SignResult> =>
  startSign({
    vault: vaults.get(key.party)!,
    key,
    sessionId: id,
    participants: [cheat, honest],
    path: PATH,
    message: digest,
  })

/**
 * Runs a signing session in which the honest side sends first in every round, because a cheating
 * party may wait for its message.
 */
async function duel(
  curve: Curve,
  role: Role,
  change: Change,
  theirs: KeyMaterial = keys[curve].get(role.cheat)!,
  of = keys,
): Promise<End> {
  const id = sessionId()
  const honest = sessionOf(of[curve].get(role.honest)!, role, id)
  const cheat = sessionOf(theirs, role, id)
  let [toHonest, toCheat]: [Uint8Array[], Uint8Array[]] = [[], []]
  let previous: Uint8Array | null = null
  try {
    for (let round = 1; ; round++) {
      let step
      try {
        step = await honest.step(toHonest.map((payload) => ({ from: role.cheat, payload })))
      } catch (error) {
        if (!(error instanceof ThresholdError)) throw error
        return {
          code: error.code,
          result: null,
          round,
          counterparty: error.counterparty,
          text: error.message,
        }
      }
      if (step.kind === 'done')
        return { code: 'SIGNED', result: step.result, round, counterparty: null, text: '' }
      const received = step.messages[0]!.payload
      let own
      try {
        own = await cheat.step(toCheat.map((payload) => ({ from: role.honest, payload })))
      } catch {
        // The honest side answered, and the cheating party's real engine does not know which
        // messages were sent.
        return { code: 'ANSWERED', result: null, round, counterparty: null, text: '' }
      }
      const payload = own.messages[0]!.payload
      toHonest = change({ round, payload, received, before: previous }) ?? [payload]
      toCheat = [received]
      previous = payload
    }
  } finally {
    honest.abort()
    cheat.abort()
  }
}

/** Returns the messages of one party in a session without tampering. */
async function archived(curve: Curve, role: Role, digest = DIGEST): Promise<Uint8Array[]> {
  const said: Uint8Array[] = []
  const id = sessionId()
  const sessions = new Map(
    [role.honest, role.cheat].map((party) => [
      party,
      sessionOf(keys[curve].get(party)!, role, id, digest),
    ]),
  )
  await carry(sessions, ({ from, payload }) => {
    if (from === role.cheat) said.push(payload)
    return [{ from, payload }]
  })
  return said
}

/** Checks that the session produced no invalid signature and did not panic. */
function sound(curve: Curve, role: Role, end: End, name: string): void {
  assert.doesNotMatch(end.text, /panic/, name)
  if (end.result)
    assert.ok(isValid(curve, keys[curve].get(role.honest)!, PATH, DIGEST, end.result), name)
  if (end.code === 'CHEAT') assert.equal(end.counterparty, role.cheat, name)
}

for (const curve of ['secp256k1', 'ed25519'] as const) {
  for (const role of ROLES) {
    test(`${curve}: each cheat of party ${role.cheat} in signing has the expected result`, async () => {
      const others = await archived(curve, role, new Uint8Array(randomBytes(32)))
      const wrong: string[] = []
      for (const each of CHEATS[`${curve}/sign`]) {
        const end = await duel(curve, role, ({ round, payload, received }) =>
          round === roundOf(each)
            ? [tamper(payload, each.cheat({ received, other: others[round - 1]! }))]
            : null,
        )
        sound(curve, role, end, each.name)
        if (end.code !== each.expected)
          wrong.push(`${each.name}: ${end.code} instead of ${each.expected} (${end.text})`)
      }
      assert.deepEqual(wrong, [])
    })

    test(`${curve}: refuses repeated, late and foreign messages of party ${role.cheat}`, async () => {
      const others = await archived(curve, role)
      const rounds = curve === 'secp256k1' ? [1, 2, 3] : [1, 2]
      for (const at of rounds) {
        const only = (change: Change): Promise<End> =>
          duel(curve, role, (said) => (said.round === at ? change(said) : null))
        const ends = {
          twice: await only(({ payload }) => [payload, payload]),
          missing: await only(() => []),
          late: at === 1 ? null : await only(({ before: earlier }) => [earlier!]),
          'another session': await only(() => [others[at - 1]!]),
        }
        for (const [name, end] of Object.entries(ends)) {
          if (!end) continue
          sound(curve, role, end, name)
          assert.equal(end.code, 'MALFORMED', `${name}, round ${at}: ${end.text}`)
        }
      }
    })
  }
}

test('secp256k1: signing with another share fails, and no party is banned', async () => {
  for (const role of ROLES) {
    const end = await duel(
      'secp256k1',
      role,
      () => null,
      shiftedShare(sealing, keys.secp256k1.get(role.cheat)!),
    )
    sound('secp256k1', role, end, 'another share')
    assert.equal(end.code, 'ABORT', end.text)
    // The share was read and written correctly: the same share, sealed again, can sign.
    assert.equal(
      (
        await duel(
          'secp256k1',
          role,
          () => null,
          shiftedShare(sealing, keys.secp256k1.get(role.cheat)!, 0n),
        )
      ).code,
      'SIGNED',
    )
  }
})

/** Returns the honest side's result for each column: 'ANSWERED' or a code. */
async function columns(
  role: Role,
  of: typeof keys,
  indices: readonly number[],
  passesIf: 0 | 1,
): Promise<string[]> {
  const own = of.secp256k1.get(role.cheat)!
  const signing = { share: openShare(sealing, own), path: PATH, digest: DIGEST }
  const codes: string[] = []
  for (const column of indices) {
    const end = await duel(
      'secp256k1',
      role,
      ({ round, payload }) =>
        round === 1
          ? [
              tamper(payload, {
                message: 'secp256k1/sign/1',
                kind: 'ot-column',
                column,
                passesIf,
                signing,
              }),
            ]
          : null,
      own,
      of,
    )
    sound('secp256k1', role, end, `column ${column}`)
    codes.push(end.code)
  }
  return codes
}

test('secp256k1: whether a flipped bit of the OT extension is detected depends on a secret bit', async () => {
  const indices = Array.from({ length: 40 }, (_, index) => index * 6)
  const refreshed = { ...keys, secp256k1: await complete(refreshSessions(vaults, keys.secp256k1)) }
  for (const role of ROLES) {
    const secretOf = (of: typeof keys): number[] => {
      const bits = correlationOf(openShare(sealing, of.secp256k1.get(role.honest)!), role.cheat)
      return indices.map((column) => bits[column]!)
    }
    const expected = (of: typeof keys, passesIf: 0 | 1): string[] =>
      secretOf(of).map((bit) => (bit === passesIf ? 'ANSWERED' : 'CHEAT'))
    const seen = await columns(role, keys, indices, 0)
    assert.ok(seen.includes('ANSWERED') && seen.includes('CHEAT'), 'both outcomes occur')
    assert.deepEqual(seen, expected(keys, 0), 'the outcome is the secret bit')
    assert.deepEqual(
      await columns(role, keys, indices.slice(0, 8), 0),
      seen.slice(0, 8),
      'the same column ends in the same way',
    )
    assert.deepEqual(
      await columns(role, keys, indices.slice(0, 8), 1),
      expected(keys, 1).slice(0, 8),
      'the other way round',
    )
    assert.deepEqual(
      await columns(role, refreshed, indices.slice(0, 16), 0),
      expected(refreshed, 0).slice(0, 16),
    )
    assert.notDeepEqual(secretOf(refreshed), secretOf(keys), 'a refresh draws new bits')
    // Data of one epoch is useless in the next: the engine does not receive messages of another
    // epoch.
    const old = await duel(
      'secp256k1',
      role,
      () => null,
      keys.secp256k1.get(role.cheat)!,
      refreshed,
    )
    assert.equal(old.code, 'MALFORMED')
    const rebound = await duel(
      'secp256k1',
      role,
      ({ payload, received }) => [
        forge(payload, (header) => void header.set(received.subarray(7, 39), 7)),
      ],
      keys.secp256k1.get(role.cheat)!,
      refreshed,
    )
    assert.equal(rebound.code, 'ABORT')
  }
})

test('after all these attempts the keys can still sign', async () => {
  for (const curve of ['secp256k1', 'ed25519'] as const)
    await signAndCheck(vaults, keys[curve], [1, 2], PATH, DIGEST)
})

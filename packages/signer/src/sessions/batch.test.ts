// When a session becomes binding: before anything leaves or ends from which a signature can follow.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Curve, KeyMaterial, Vault } from '@custody/threshold'
import { engineDouble } from '../../testing/engine-double.ts'
import { Batch, SIGN_ROUNDS, type RoundMessages } from './batch.ts'
import type { Bans } from './bans.ts'

const BANS = {
  assertNot: () => {},
  check: (_partner: number, run: () => unknown) => run(),
  endsWith: () => () => {},
  consider: () => {},
} as unknown as Bans

/** What has happened to one side, in its order. */
type Events = string[]

function side(curve: Curve, partner: number, events: Events, refuses = false): Batch {
  const key = {
    curve,
    keyId: 'key',
    epoch: 0,
    party: 3 - partner,
    sealedShare: new Uint8Array(32).fill(7),
  } as unknown as KeyMaterial
  return new Batch({
    engine: engineDouble,
    vault: {} as Vault,
    bans: BANS,
    key,
    items: [
      { path: [1, 2, 3], publicKey: new Uint8Array(33), message: new Uint8Array(32).fill(1) },
    ],
    sessionIds: [new Uint8Array(32).fill(2)],
    participants: [1, 2],
    partner,
    bind: () => {
      events.push('bound')
      if (refuses) throw new Error('refused')
    },
  })
}

/** A side computes the answer to messages, as far as it can, and sends it. */
async function answer(run: Batch, events: Events, inbox: readonly RoundMessages[]) {
  const mine: RoundMessages[] = []
  for (const messages of inbox) {
    mine.push(await run.step(messages))
    if (run.results) events.push('finished')
  }
  run.beforeSending()
  if (mine.length > 0) events.push(`sent ${mine.length}`)
  return mine
}

for (const curve of ['secp256k1', 'ed25519'] as const) {
  test(`${curve}: a side is bound before it finishes, and before it sends its last round`, async () => {
    // The leader first, as in a session; then both send one round at a time.
    for (const isOneByOne of [false, true]) {
      const [leads, follows]: [Events, Events] = [[], []]
      const [leader, partner] = [side(curve, 2, leads), side(curve, 1, follows)]
      let toLeader = [await partner.step(null)]
      let toPartner = [await leader.step(null)]
      let queue: RoundMessages[] = []
      for (let turn = 0; turn < 8 && !(leader.results && partner.results); turn++) {
        toPartner.push(...(await answer(leader, leads, toLeader)))
        queue.push(
          ...toPartner.filter((messages) => messages.length > 0 && messages[0]!.length > 0),
        )
        const given = isOneByOne ? queue.slice(0, 1) : queue
        queue = isOneByOne ? queue.slice(1) : []
        toLeader = (await answer(partner, follows, partner.results ? [] : given)).filter(
          (messages) => messages[0]!.length > 0,
        )
        if (leader.results) toLeader = []
        toPartner = []
      }
      assert.ok(leader.results && partner.results, `${curve} ${isOneByOne}`)
      for (const events of [leads, follows]) {
        assert.equal(events.filter((event) => event === 'bound').length, 1, events.join())
        const sentBefore = events
          .slice(0, events.indexOf('bound'))
          .reduce((sum, event) => sum + Number(event.split(' ')[1] ?? 0), 0)
        // The first round of each side is sent apart.
        assert.ok(1 + sentBefore < SIGN_ROUNDS[curve], events.join())
        assert.ok(events.indexOf('bound') < events.indexOf('finished'), events.join())
      }
    }
  })

  test(`${curve}: a side that may not be bound neither sends its last round nor finishes`, async () => {
    const events: Events = []
    const run = side(curve, 2, events, true)
    const other = side(curve, 1, [])
    const theirs = [await other.step(null)]
    const mine = [await run.step(null)]
    const isLast = () => mine.length === SIGN_ROUNDS[curve]
    while (!isLast()) {
      mine.push(await run.step(theirs.at(-1)!))
      if (!isLast()) theirs.push(await other.step(mine.at(-2)!))
    }
    assert.throws(() => run.beforeSending(), /refused/)
    await assert.rejects(run.step(theirs.at(-1)!), /refused/)
    assert.equal(run.results, null)
    assert.ok(events.every((event) => event === 'bound'))
  })
}

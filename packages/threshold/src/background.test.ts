import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  complete,
  isValid,
  keygenSessions,
  openVaults,
  refreshSessions,
  signSessions,
} from '../testing/helpers.ts'
import type { Session } from './index.ts'

/** Runs every step of a session below the priority of other steps. */
const inBackground = <R>(sessions: Map<number, Session<R>>): Map<number, Session<R>> =>
  new Map(
    [...sessions].map(([party, session]) => [
      party,
      {
        step: (inbox) => session.step(inbox, { isBackground: true }),
        abort: () => session.abort(),
      } satisfies Session<R>,
    ]),
  )

test('steps of lower priority generate and refresh a key that signs, and report errors', async () => {
  const vaults = await openVaults()
  const keys = await complete(inBackground(keygenSessions(vaults, 'ed25519')))
  const refreshed = await complete(inBackground(refreshSessions(vaults, keys)))
  const message = Buffer.from('a message')
  const signed = await complete(signSessions(vaults, refreshed, [1, 3], [7], message))
  assert.ok(isValid('ed25519', keys.get(1)!, [7], message, signed.get(1)!))
  const [first] = inBackground(keygenSessions(vaults, 'ed25519')).values()
  await first!.step([])
  await assert.rejects(first!.step([{ from: 2, payload: new Uint8Array(3) }]), {
    code: 'MALFORMED',
  })
  await assert.rejects(first!.step([]), { code: 'BAD_ARGUMENT' })
})

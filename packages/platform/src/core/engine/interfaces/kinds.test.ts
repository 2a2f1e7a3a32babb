import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STATE_SCHEMAS } from '../../database/state-schemas.ts'
import type { StateRule } from './kind.ts'
import type { TransactionKind } from '../transaction.ts'
import { createKinds } from '../../../server/app/kinds.ts'
import { partialApplication } from '../../../../testing/partial-application.ts'

/** Tests of the tables of states. The simulation checks that transactions follow them. */
const kinds = Object.entries(createKinds(partialApplication({}))).map(
  ([name, kind]) => [name as TransactionKind, kind.states] as const,
)

test('the table of each kind has exactly the states that the database allows', () => {
  for (const [kind, states] of kinds)
    assert.deepEqual(
      states.map(({ state }) => state).toSorted(),
      STATE_SCHEMAS[kind].states.toSorted(),
      kind,
    )
})

test('every state of a kind can be reached, and a state without a step ends or is scanned', () => {
  for (const [kind, states] of kinds) {
    const reached = new Set<string>(states.slice(0, 1).map(({ state }) => state))
    const rule = (name: string) => states.find(({ state }) => state === name) as StateRule
    for (const state of reached) for (const next of rule(state).next) reached.add(next)
    assert.deepEqual(
      states.map(({ state }) => state).filter((state) => !reached.has(state)),
      [],
      kind,
    )
    const isScanned = kind === 'DEPOSIT' || kind === 'TANK_DEPOSIT'
    // An end in a block continues only if a reorganisation removes the block.
    for (const { state, run, next } of states) {
      const isEnd = next.every((each) => each === 'CONFIRMING')
      if (!isScanned) assert.equal(run === undefined, isEnd, `${kind} ${state}`)
    }
  }
})

test('from every state of a kind that is signed, a transaction can end', () => {
  const ends = new Set(['CONFIRMED', 'REVERTED', 'CANCELLED', 'FAILED', 'PARTIAL'])
  for (const [kind, states] of kinds) {
    if (kind === 'DEPOSIT' || kind === 'TANK_DEPOSIT') continue
    const ending = new Set<string>(ends)
    for (let grows = true; grows;) {
      grows = false
      for (const { state, next } of states)
        if (!ending.has(state) && next.some((each) => ending.has(each))) {
          ending.add(state)
          grows = true
        }
    }
    assert.deepEqual(
      states.map(({ state }) => state).filter((state) => !ending.has(state)),
      [],
      kind,
    )
  }
})

test('a cancellation ends a transfer at once only before it can have been signed', () => {
  const signed = ['SIGNED', 'BROADCASTING', 'CONFIRMING', 'REPLACING', 'VOIDING']
  for (const [kind, states] of kinds)
    for (const { state, endsIfCancelled } of states)
      if (signed.includes(state)) assert.equal(endsIfCancelled, undefined, `${kind} ${state}`)
})

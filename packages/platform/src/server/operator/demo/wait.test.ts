import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitUntil } from './wait.ts'

const POLL_MS = 2000
const MAX_MS = 1_200_000

/** Returns tools whose clock moves only by `sleep`, and the messages. */
function tools() {
  let at = 0
  const messages: string[] = []
  return {
    messages,
    at: () => at,
    clock: () => at,
    sleep: async (ms: number) => {
      at += ms
    },
    say: (text: string) => messages.push(text),
  }
}
const wait = <T>(read: () => Promise<T | null>) => ({
  what: 'ETH: transfer 1',
  read,
  pollMs: POLL_MS,
  maxMs: MAX_MS,
})

test('waits longer than three minutes, and reports every 30 seconds that it still waits', async () => {
  const clock = tools()
  const value = await waitUntil(
    clock,
    wait(async () => (clock.clock() >= 200_000 ? 'confirmed' : null)),
  )
  assert.equal(value, 'confirmed')
  assert.deepEqual(
    clock.messages,
    [30, 60, 90, 120, 150, 180].map((s) => `still waiting for ETH: transfer 1 (${s} s)`),
  )
})

test('a failure ends the wait immediately', async () => {
  const clock = tools()
  const failed = waitUntil(
    clock,
    wait(async () => {
      throw new Error('ETH: transfer failed: POLICY_DENIED')
    }),
  )
  await assert.rejects(failed, /transfer failed: POLICY_DENIED/)
  assert.equal(clock.at(), 0)
})

test('gives up after the maximum, and does not call the transfer failed', async () => {
  const clock = tools()
  await assert.rejects(
    waitUntil(
      clock,
      wait(async () => null),
    ),
    /^Error: ETH: transfer 1: no result after 1202 s; it may still be confirmed$/,
  )
})

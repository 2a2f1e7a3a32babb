import assert from 'node:assert/strict'
import test from 'node:test'
import type { Verdict } from '../policy/order.ts'
import { State } from '../store/state.ts'
import { CatchUp } from './catch-up.ts'

type Parts = ConstructorParameters<typeof CatchUp>[0]

test('a leader waits at most 1.5 seconds for what the third node knows of an account', async () => {
  const state = new State()
  state.nonces.set(State.accountKey('ETH', '0x1'), 2n)
  state.fuelled.merge('ETH', '0x1', { fuel: new Map([['a', 10n]]), fees: new Map() })
  const asked: { call: string; timeout: number }[] = []
  const parts = {
    config: { timeouts_ms: { round: 60_000 } },
    store: { state },
    peers: {
      nodes: [2, 3],
      handle: () => undefined,
      call: async (
        _node: number,
        call: string,
        _body: unknown,
        { timeout }: { timeout: number },
      ) => {
        asked.push({ call, timeout })
        throw new Error('the third node does not answer')
      },
    },
    log: () => undefined,
  }
  const verdict = {
    network: { code: 'ETH', family: 'evm' },
    decoded: { network: 'ETH', nonce: 7n, from: ['0x1'] },
    leftover: { address: '0x1', amount: 5n },
  } as unknown as Verdict
  const catchUp = new CatchUp(parts as unknown as Parts)
  await catchUp.prepare(verdict, { nonceOf: () => null })
  assert.deepEqual(asked.map(({ call }) => call).sort(), [
    '/peer/fuelled',
    '/peer/fuelled',
    '/peer/nonce',
    '/peer/nonce',
  ])
  assert.deepEqual([...new Set(asked.map(({ timeout }) => timeout))], [1500])
})

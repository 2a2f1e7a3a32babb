// When a transaction on Solana has expired, and what the account's history shows about a message
// that was signed twice.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcUnavailable, type SolanaClient } from '../index.ts'
import { client, head, OWNER, refusal, type Answers } from '../../testing/solana-support.ts'

/**
 * A node at a slot and height. Each response of a list is returned once, and the last one from then
 * on.
 */
const answered =
  <T>(...values: [T, ...T[]]) =>
  (): T =>
    values.length > 1 ? (values.shift() as T) : values[0]
const epoch = (slot: number, height: number) => ({ absoluteSlot: slot, blockHeight: height })
const statusAt = (slot: number, status: unknown = null) => ({ context: { slot }, value: [status] })
const history = (oldest: number): Answers => ({
  getFirstAvailableBlock: () => 5,
  getBlock: () => head('B', 'A', 4, oldest),
})

test('a transaction is expired only if it is absent and the history covers its lifetime', async () => {
  const answers = (height: number, oldest: number, status: unknown): Answers => ({
    ...history(oldest),
    getEpochInfo: () => epoch(height + 50, height),
    getSignatureStatuses: () => statusAt(height + 60, status),
  })
  assert.equal(await client(answers(1001, 100, null)).isDead('S', 1000), true)
  assert.equal(
    await client(answers(1000, 100, null)).isDead('S', 1000),
    false,
    'its last block may still come',
  )
  assert.equal(
    await client(answers(2000, 851, null)).isDead('S', 1000),
    false,
    'the endpoint may have forgotten it',
  )
  assert.equal(
    await client(
      answers(2000, 100, { slot: 7, err: null, confirmationStatus: 'processed' }),
    ).isDead('S', 1000),
    false,
  )
})

test("a node that lags behind a transaction's expiry block does not prove its absence", async () => {
  const dead = (more: Answers) =>
    client({
      ...history(100),
      getEpochInfo: () => epoch(1100, 1001),
      getSignatureStatuses: () => statusAt(1100),
      ...more,
    }).isDead('S', 1000)
  assert.equal(await dead({}), true)
  assert.equal(
    await dead({ getSignatureStatuses: () => statusAt(1099) }),
    false,
    'it was asked of a node that had not seen that block',
  )
  assert.equal(
    await dead({ getSignatureStatuses: answered(statusAt(1100), statusAt(1050)) }),
    false,
    'the second look was at a node that lags',
  )
  assert.equal(
    await dead({ getEpochInfo: answered(epoch(1100, 1001), epoch(1080, 990)) }),
    false,
    'behind one address are nodes of different age',
  )
  assert.equal(
    await dead({ getEpochInfo: answered(epoch(1100, 1001), epoch(1300, 1200)) }),
    false,
    'the second look must be past what the second node calls final',
  )
})

test('a transaction that only the second query finds has not expired', async () => {
  const status = { slot: 990, err: null, confirmationStatus: 'finalized' }
  const node = client({
    ...history(100),
    getEpochInfo: () => epoch(1100, 1001),
    getSignatureStatuses: answered(statusAt(1100), statusAt(1100, status)),
  })
  assert.equal(await node.isDead('S', 1000), false)
})

const MESSAGE = '80010001' + '07'.repeat(60)
const wire = (message: string, fill: number, signatures = 1) =>
  Buffer.from(
    `${signatures.toString(16).padStart(2, '0')}${fill
      .toString(16)
      .padStart(2, '0')
      .repeat(64 * signatures)}${message}`,
    'hex',
  )
const shown = (raw: Buffer, slot: number) => ({
  slot,
  meta: { err: null, fee: 5000, preBalances: [], postBalances: [] },
  transaction: [raw.toString('base64'), 'base64'],
})

/**
 * An account with a history, newest first: signature, slot, bytes. Block heights are slots minus
 * 100.
 */
function account(
  entries: [string, number, Buffer][],
  more: Answers = {},
  requests: unknown[] = [],
): SolanaClient {
  return client({
    getEpochInfo: () => epoch(1110, 1010),
    getSignaturesForAddress: (params) => {
      const [, { before, limit, ...config }] = params as unknown as [
        string,
        { before?: string; limit: number; minContextSlot: number; commitment: string },
      ]
      requests.push(config)
      const from =
        before === undefined ? 0 : entries.findIndex(([signature]) => signature === before) + 1
      return entries
        .slice(from, from + Math.min(limit, 2))
        .map(([signature, slot]) => ({ signature, slot, err: null }))
    },
    getBlock: ([slot = 0]: number[]) => head('B', 'A', slot - 1, slot - 100),
    getTransaction: ([signature]) => {
      const status = entries.find(([each]) => each === String(signature))
      return status ? shown(status[2], status[1]) : null
    },
    ...more,
  })
}

test('finds the same message under another signature in the account’s history', async () => {
  const other = '80010001' + '08'.repeat(60)
  const entries: [string, number, Buffer][] = [
    ['later', 1105, wire(MESSAGE, 1)],
    ['else', 1090, wire(other, 2)],
    ['long', 1085, wire(`${MESSAGE}00`, 2)],
    ['twin', 1080, wire(MESSAGE, 3)],
    ['old', 500, wire(MESSAGE, 4)],
  ]
  const requests: unknown[] = []
  assert.deepEqual(await account(entries, {}, requests).findSigned(OWNER, MESSAGE, 1000), {
    hash: 'twin',
    raw: wire(MESSAGE, 3).toString('hex'),
  })
  assert.deepEqual(
    requests[0],
    { commitment: 'finalized', minContextSlot: 1110 },
    'only a node that has seen the end of it may answer',
  )
  assert.equal(
    await account(entries.filter(([name]) => name !== 'twin')).findSigned(OWNER, MESSAGE, 1000),
    null,
  )
  assert.equal(await account([]).findSigned(OWNER, MESSAGE, 1000), null)
})

test('skips several signatures like one, and counts a failed transaction as executed', async () => {
  assert.equal(
    (await account([['twin', 1080, wire(MESSAGE, 3, 2)]]).findSigned(OWNER, MESSAGE, 1000))?.hash,
    'twin',
  )
})

test('a search of an unavailable history fails instead of returning no result', async () => {
  const entries: [string, number, Buffer][] = [['a', 1090, wire(MESSAGE, 2)]]
  await assert.rejects(
    account(entries, { getTransaction: () => null }).findSigned(OWNER, MESSAGE, 1000),
    RpcUnavailable,
  )
  await assert.rejects(
    account(entries, {
      getSignaturesForAddress: () => refusal(-32016, 'Minimum context slot has not been reached'),
    }).findSigned(OWNER, MESSAGE, 1000),
  )
  await assert.rejects(
    account(entries, { getEpochInfo: () => epoch(1100, 1000) }).findSigned(OWNER, MESSAGE, 1000),
    RpcUnavailable,
  )
  await assert.rejects(
    account(entries, { getSignaturesForAddress: () => ({ nonsense: true }) }).findSigned(
      OWNER,
      MESSAGE,
      1000,
    ),
    RpcUnavailable,
  )
  const endless = () => [
    { signature: 'x', slot: 1104, err: null },
    { signature: 'x', slot: 1104, err: null },
  ]
  await assert.rejects(
    account(entries, { getSignaturesForAddress: endless }).findSigned(OWNER, MESSAGE, 1000),
    RpcUnavailable,
  )
})

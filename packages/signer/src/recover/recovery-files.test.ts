import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gatheredSchema, preparedSchema, readRecoveryFile, signedSchema } from './recovery-files.ts'

test('validates files that are passed between recovery steps, and names the error', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'custody-carried-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'file.json')
  const put = (value: unknown): string => {
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
    return path
  }
  const whose = {
    version: 1,
    workspace: 'w',
    network: 'ETH',
    to: '0x',
    tag: null,
    at: '2026-01-01T00:00:00.000Z',
  }
  const unsigned = { network: 'ETH', bytes: '02', inputs: [{ path: [1, 60, 0] }] }
  const planned = { unsigned, asset: 'ETH', from: '0x', amount: '1' }
  const prepared = {
    ...whose,
    left: [],
    more: false,
    transactions: [planned, { ...planned, fuel: [1, 60, 0] }],
  }
  const signed = {
    ...whose,
    left: [],
    more: false,
    signed: [{ network: 'ETH', raw: '02', hash: '0x' }],
  }
  const gathered = { ...whose, found: { accounts: [] } }
  assert.deepEqual(readRecoveryFile(gatheredSchema, put(gathered)), gathered)
  assert.deepEqual(readRecoveryFile(preparedSchema, put(prepared)), prepared)
  assert.deepEqual(readRecoveryFile(signedSchema, put(signed)), signed)

  assert.throws(
    () =>
      readRecoveryFile(
        preparedSchema,
        put({
          ...prepared,
          transactions: [{ ...planned, unsigned: { ...unsigned, bytes: 'no' } }],
        }),
      ),
    /^Error: --in: .*file\.json is not the output of the previous step: transactions\.0\.unsigned\.bytes: /,
  )
  assert.throws(
    () => readRecoveryFile(signedSchema, put(prepared)),
    /is not the output of the previous step: signed/,
  )
  assert.throws(
    () => readRecoveryFile(gatheredSchema, put({ ...gathered, version: 2 })),
    /: version: /,
  )
  assert.throws(() => readRecoveryFile(gatheredSchema, put('null')), /: the whole: /)
  assert.throws(
    () => readRecoveryFile(gatheredSchema, put('{"version": 1')),
    /file\.json is not JSON$/,
  )
  assert.throws(
    () => readRecoveryFile(gatheredSchema, join(folder, 'none')),
    /none cannot be read$/,
  )
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { reportUnreadable } from './report-unreadable.ts'
import { createMetrics } from '../../../core/metrics.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests of ledgers and transactions of future protocol versions at a real local chain: deposits are
 * credited, transfers end, and skipped data is counted.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-unreadable-shapes-'))
let devnet: Devnet

const XLM: WalletAddress = {
  code: 'XLM',
  to: 'GAFL27YJD4LDNWW4YLCCCEID6Q3K5UGKOP3AAHSPIWJZT7S3QIE2275L',
  held: '100',
  amount: '10',
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** Offset of the extension of `scpValue` in a header without upgrades. */
const ARM_AT = 112

/** Returns the same header with another extension of its value. */
function withArm(headerXdr: string, arm: number, content: Buffer): string {
  const bytes = Buffer.from(headerXdr, 'base64')
  assert.equal(bytes.readUInt32BE(ARM_AT), 0, 'the local chain writes arm 0')
  return Buffer.concat([
    bytes.subarray(0, ARM_AT),
    uint32(arm),
    content,
    bytes.subarray(ARM_AT + 4),
  ]).toString('base64')
}

const signature = Buffer.concat([Buffer.alloc(36), uint32(64), Buffer.alloc(64, 1)])
for (const [what, arm, content] of [
  ['Protocol 30 (CAP-88)', 3, Buffer.concat([Buffer.alloc(8, 1), signature])],
  ['a future protocol', 77, Buffer.alloc(12, 1)],
] as const) {
  test(`XLM with ledgers of ${what}: credits a deposit and pays a transfer`, async () => {
    const fixture = new FamilyFixture(database.get(), devnet, XLM, clock, async (url, init) => {
      const response = await fetch(url, init)
      if (!String(init.body).includes('getLedgers')) return response
      const answer = (await response.json()) as { result?: { ledgers: { headerXdr: string }[] } }
      for (const ledger of answer.result?.ledgers ?? [])
        ledger.headerXdr = withArm(ledger.headerXdr, arm, content)
      return Response.json(answer)
    })
    try {
      await fixture.open()
      const id = await fixture.create('sent')
      await fixture.run()
      assert.equal((await fixture.read(id)).state, 'CONFIRMED')
      await fixture.check()
      const counted = /custody_chain_unreadable_total\{network="XLM",kind="field"\} (\d+)/.exec(
        await fixture.services.metrics.text(),
      )?.[1]
      assert.equal(Number(counted) > 0, arm === 77, `${counted} fields were counted`)
    } finally {
      await fixture.close()
    }
  })
}

test('XLM: an undecodable transaction is counted, and other deposits of its ledger are credited', async () => {
  let isOdd = false
  const fixture = new FamilyFixture(database.get(), devnet, XLM, clock, async (url, init) => {
    const response = await fetch(url, init)
    if (!isOdd || !String(init.body).includes('getTransactions')) return response
    const answer = (await response.json()) as {
      result: { transactions: { envelopeXdr: string; txHash: string }[] }
    }
    const [first] = answer.result.transactions
    if (first)
      answer.result.transactions.unshift({
        ...first,
        txHash: 'ab'.repeat(32),
        envelopeXdr: uint32(99).toString('base64'),
      })
    return Response.json(answer)
  })
  try {
    await fixture.open()
    const before = await fixture.available()
    isOdd = true
    await fixture.fund('5')
    assert.equal(await fixture.available(), before + 50_000_000n)
    assert.match(
      await fixture.services.metrics.text(),
      /custody_chain_unreadable_total\{network="XLM",kind="transaction"\} [1-9]/,
    )
  } finally {
    await fixture.close()
  }
})

test('unreadable data is logged: a transaction as an error with hash, a field as a warning', async () => {
  const lines: [string, unknown, string][] = []
  const line = (level: string) => (fields: unknown, text: string) => {
    lines.push([level, fields, text])
  }
  const metrics = createMetrics()
  const report = reportUnreadable({ error: line('error'), warn: line('warn') } as never, metrics)
  report({ network: 'XLM', kind: 'transaction', name: 'H', reason: 'why' })
  report({ network: 'XLM', kind: 'field', name: 'F', reason: 'why' })
  assert.deepEqual(lines, [
    [
      'error',
      { network: 'XLM', hash: 'H', reason: 'why' },
      'a transaction on the chain cannot be read; a deposit in it is not credited',
    ],
    [
      'warn',
      { network: 'XLM', field: 'F', reason: 'why' },
      'a field of the chain cannot be read; another value is used',
    ],
  ])
  for (const kind of ['transaction', 'field'])
    assert.ok(
      (await metrics.text()).includes(
        `custody_chain_unreadable_total{network="XLM",kind="${kind}"} 1`,
      ),
    )
})

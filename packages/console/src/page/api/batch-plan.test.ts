// Which lines of a batch file cause transfers: files that are corrected, reordered and sent again,
// with a service that executes each sequence_id once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { LINES_MAX, readBatch } from './batch-file.ts'
import type { Earlier, Line } from './batch-line.ts'
import { attemptOf, planBatch, RECENT_DAYS, type History } from './batch-plan.ts'

const ASSETS = new Map([
  ['ETH', { decimals: 18, takes_tag: false }],
  ['XRP', { decimals: 6, takes_tag: true }],
])
const DAY_MS = 86_400_000
const START = Date.UTC(2026, 2, 1)

/**
 * Simulates the transfers of one workspace. A `sequence_id` is executed once in each wallet; a
 * repeated one changes nothing.
 */
class Service {
  nowMs = START
  readonly transfers: Earlier[] = []

  order(
    line: Pick<Line, 'asset' | 'amount' | 'payee'>,
    sequence: string | null,
    sub = 'main',
  ): Earlier {
    const earlier = this.transfers.find(
      (each) =>
        sequence !== null &&
        each.sub_account === sub &&
        each.asset === line.asset &&
        each.sequence_id === sequence,
    )
    if (earlier !== undefined) return earlier
    const made: Earlier = {
      id: `t${this.transfers.length}`,
      sub_account: sub,
      asset: line.asset,
      amount: line.amount,
      destination_id: line.payee.address,
      address_tag: line.payee.tag === '' ? null : line.payee.tag,
      status: 'pending',
      sequence_id: sequence,
      created_at: new Date(this.nowMs).toISOString(),
    }
    this.transfers.push(made)
    return made
  }

  history(): History {
    return {
      subAccount: 'main',
      to: (asset, address) =>
        this.transfers.filter((each) => each.asset === asset && each.destination_id === address),
      named: (reference) =>
        this.transfers.filter(
          ({ sequence_id: id }) => id === reference || id?.startsWith(`${reference}#`) === true,
        ),
    }
  }

  async plan(file: string): Promise<Line[]> {
    const { lines } = readBatch(file, ASSETS)
    for (const line of lines)
      line.payee = { address: line.destination_address.toLowerCase(), tag: line.address_tag }
    await planBatch(lines, ASSETS, this.history(), this.nowMs)
    return lines
  }

  /**
   * Sends what the panel sends without a choice by the user. @param until number of lines after
   * which the browser is closed
   */
  async send(file: string, until = Infinity): Promise<Earlier[]> {
    const before = this.transfers.length
    const lines = await this.plan(file)
    for (const line of lines.filter(({ plan }) => plan?.standing === 'new').slice(0, until))
      this.order(line, line.plan?.sequence_id ?? '')
    return this.transfers.slice(before)
  }
}

const HEAD = 'asset,amount,destination_address,address_tag,memo,reference\n'
const file = (...lines: string[]) => HEAD + lines.join('\n')
const standings = (lines: readonly Line[]) => lines.map(({ plan }) => plan?.standing)

test('correcting one memo of a file with 25 payments repeats no payment', async () => {
  const service = new Service()
  const lines = Array.from({ length: 25 }, (_, at) => `ETH,0.${at + 1},0xab${at % 5},,memo ${at},`)
  assert.equal((await service.send(file(...lines))).length, 25)
  lines[7] = lines[7]?.replace('memo 7', 'memo seven') as string
  assert.deepEqual(await service.send(file(...lines)), [])
  service.nowMs += 400 * DAY_MS
  assert.deepEqual(await service.send(file(...lines)), [], 'not a year later either')
})

test('the same file in another order or spelling sends nothing; a new line sends only itself', async () => {
  const service = new Service()
  const lines = ['ETH,1,0xab,,a,', 'XRP,2,ra,7,b,', 'XRP,2,rb,,c,']
  assert.equal((await service.send(file(...lines))).length, 3)
  assert.deepEqual(await service.send(file(...lines)), [])
  assert.deepEqual(await service.send(file(...lines.toReversed())), [])
  assert.deepEqual(
    await service.send(file('ETH, 1.00 ,0xAB,,a,', 'XRP,2.0,ra,7,,', 'XRP,02,rb,,c,')),
    [],
  )
  assert.deepEqual(
    (await service.send(file('ETH,5,0xcd,,,', ...lines))).map(({ amount }) => amount),
    ['5'],
  )
  const renamed = 'memo,address_tag,destination_address,amount,asset\na,,0xab,1,ETH\n'
  assert.deepEqual(
    await service.send(renamed),
    [],
    'columns in another order, and none for references',
  )
})

test('equal lines are separate payments, and removing a line sends nothing', async () => {
  const service = new Service()
  const line = 'ETH,1,0xab,,,'
  assert.equal((await service.send(file(line, line, line))).length, 3)
  for (const count of [2, 1, 3])
    assert.deepEqual(await service.send(file(...Array.from({ length: count }, () => line))), [])
  assert.equal((await service.send(file(line, line, line, line))).length, 1)
})

test('after equal lines are removed, a payment of a removed line counts for a remaining line', async () => {
  const service = new Service()
  const line = 'ETH,1,0xab,,,'
  const lines = await service.plan(file(line, line, line))
  // The service refuses the first two, for example because the balance is too low.
  service.order(lines[2] as Line, lines[2]?.plan?.sequence_id ?? '')
  service.nowMs += 30 * DAY_MS
  assert.deepEqual(await service.send(file(line)), [])
  assert.equal((await service.send(file(line, line, line))).length, 2)
})

test('continues an interrupted file at the first unsent line', async () => {
  const service = new Service()
  const lines = ['ETH,1,0xab,,,', 'ETH,1,0xab,,,', 'ETH,2,0xab,,,r', 'XRP,3,ra,1,,']
  assert.equal((await service.send(file(...lines), 2)).length, 2)
  assert.equal((await service.send(file(...lines))).length, 2)
  assert.equal(service.transfers.length, 4)
})

test('marks a recent payment to the same address, and excludes it until the user includes it', async () => {
  const [form] = readBatch(file('XRP,2,ra,7,,'), ASSETS).lines as [Line]
  for (const [sub, tag] of [
    ['main', '7'],
    ['main', '8'],
    ['main', ''],
    ['other', '7'],
  ] as const) {
    const service = new Service()
    service.order({ ...form, payee: { address: 'ra', tag } }, 'a-form', sub)
    service.nowMs += (RECENT_DAYS - 1) * DAY_MS
    const [line] = (await service.plan(file('XRP,2.0,ra,7,,'))) as [Line]
    assert.deepEqual(
      [line.plan?.standing, line.plan?.earlier.map(({ id }) => id)],
      ['paid', ['t0']],
      `${sub} ${tag}`,
    )
    assert.deepEqual(await service.send(file('XRP,2,ra,7,,')), [])
    service.order(line, line.plan?.sequence_id ?? '')
    assert.equal(service.transfers.length, 2, 'by explicit choice it is paid')
    assert.deepEqual(standings(await service.plan(file('XRP,2,ra,7,,'))), ['sent'])
    service.nowMs += 2 * DAY_MS
    assert.deepEqual(
      standings(await service.plan(file('XRP,2,ra,7,,x'))),
      ['paid'],
      'a reference that was added does not pay again',
    )
    service.nowMs += RECENT_DAYS * DAY_MS
    assert.deepEqual(
      standings(await service.plan(file('XRP,2,ra,7,,x'))),
      ['new'],
      'the same payment in another week',
    )
  }
})

test('a user can repeat a failed payment once, and the repetition does not count as failed', async () => {
  for (const reference of ['', 'r1']) {
    const service = new Service()
    const text = file(`ETH,1,0xab,,,${reference}`)
    const [first] = (await service.send(text)) as [Earlier]
    first.status = 'failed'
    assert.deepEqual(await service.send(text), [], 'not by itself')
    const [line] = (await service.plan(text)) as [Line]
    assert.equal(line.plan?.standing, 'failed')
    for (const _ of [1, 2]) service.order(line, line.plan?.sequence_id ?? '')
    assert.equal(service.transfers.length, 2, 'the choice orders once, however often it is sent')
    assert.deepEqual(standings(await service.plan(text)), ['sent'])
    assert.deepEqual(await service.send(text), [])
  }
})

test('a user can pay a sent line once more, and all its payments are displayed', async () => {
  for (const reference of ['', 'r1']) {
    const service = new Service()
    const text = file(`ETH,1,0xab,,,${reference}`)
    await service.send(text)
    for (let count = 2; count < 5; count++) {
      service.nowMs += 30 * DAY_MS
      const [line] = (await service.plan(text)) as [Line]
      assert.equal(line.plan?.earlier[0]?.id, `t${count - 2}`, 'the newest first')
      service.order(line, line.plan?.sequence_id ?? '')
      assert.equal(service.transfers.length, count)
    }
  }
})

test('a reference of another payment is an error of its line, which displays that transfer', async () => {
  const service = new Service()
  await service.send(file('XRP,2,ra,7,,r1'))
  for (const other of [
    'XRP,3,ra,7,,r1',
    'XRP,2,rb,7,,r1',
    'XRP,2,ra,8,,r1',
    'XRP,2,ra,,,r1',
    'ETH,2,ra,,,r1',
  ]) {
    const [line] = (await service.plan(file(other))) as [Line]
    assert.match(String(line.problems), /^reference: names another payment/, other)
    assert.deepEqual(
      line.plan?.earlier.map(({ id }) => id),
      ['t0'],
      other,
    )
    assert.deepEqual(await service.send(file(other)), [], other)
  }
  assert.deepEqual(standings(await service.plan(file('XRP,2.00,ra,7,another memo,r1'))), ['sent'])
  // Two invoices with the same amount are two payments.
  assert.equal((await service.send(file('XRP,2,rc,7,,r2', 'XRP,2,rc,7,,r3'))).length, 2)
  assert.equal(attemptOf('r1', 1), 'r1')
})

interface Row {
  payment: number
  memo: number
  reference: number
}
const PAYMENTS = ['ETH,1,0xab', 'ETH,1.0,0xAB', 'ETH,2,0xab', 'XRP,1,ra', 'XRP,2,rb']
/** Payments with the same content have the same number. */
const CONTENT = [0, 0, 2, 3, 4]
const row = fc.record({
  payment: fc.nat({ max: PAYMENTS.length - 1 }),
  memo: fc.nat({ max: 2 }),
  reference: fc.constant(0),
})
const edit = fc.oneof(
  fc.record({ kind: fc.constant('memo' as const), at: fc.nat(), memo: fc.nat({ max: 9 }) }),
  fc.record({ kind: fc.constant('add' as const), at: fc.nat(), row }),
  fc.record({ kind: fc.constant('remove' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('move' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('nothing' as const) }),
  fc.record({ kind: fc.constant('break' as const), at: fc.nat({ max: 5 }) }),
  fc.record({ kind: fc.constant('days' as const), days: fc.nat({ max: 20 }) }),
)
const textOf = (rows: readonly Row[]) =>
  file(
    ...rows.map(
      ({ payment, memo, reference }) =>
        `${PAYMENTS[payment]},,memo ${memo},${reference === 0 ? '' : `r${reference}`}`,
    ),
  )
const countsOf = (contents: readonly number[]) =>
  PAYMENTS.map((_, content) => contents.filter((each) => each === content).length)

test('for any edits between uploads, each payment is made as often as in the largest file', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { maxLength: 6 }),
      fc.array(edit, { maxLength: 8 }),
      fc.boolean(),
      async (first, edits, isNamed) => {
        const service = new Service()
        let names = 0
        const named = (each: Row): Row => (isNamed ? { ...each, reference: ++names } : each)
        const rows = first.map(named)
        const most = PAYMENTS.map(() => 0)
        const seen = new Map<number, number>()
        const send = async (until?: number) => {
          if (rows.length === 0) return
          const before = countsOf(made())
          const wanted = countsOf(rows.map(({ payment }) => CONTENT[payment] as number))
          await service.send(textOf(rows), until)
          const after = countsOf(made())
          for (const { payment, reference } of rows) seen.set(reference, CONTENT[payment] as number)
          if (isNamed) return
          for (const [content, count] of after.entries()) {
            most[content] = Math.max(most[content] as number, wanted[content] as number)
            assert.ok(
              count <= (most[content] as number),
              `payment ${content}: ${count} made, ${most[content]} lines at most`,
            )
            if (until === undefined)
              assert.equal(count, Math.max(before[content] as number, wanted[content] as number))
          }
        }
        const made = () =>
          service.transfers.map(
            ({ asset, amount, destination_id: to }) =>
              CONTENT[PAYMENTS.indexOf([asset, amount.replace('.0', ''), to].join(','))] as number,
          )
        await send()
        for (const each of edits) {
          const at = 'at' in each && rows.length > 0 ? each.at % rows.length : 0
          if (each.kind === 'memo' && rows[at] !== undefined)
            rows[at] = { ...rows[at], memo: each.memo }
          if (each.kind === 'add' && rows.length < 8) rows.splice(at, 0, named(each.row))
          if (each.kind === 'remove') rows.splice(at, 1)
          if (each.kind === 'move')
            rows.splice(each.to % (rows.length + 1), 0, ...rows.splice(at, 1))
          if (each.kind === 'days') service.nowMs += each.days * DAY_MS
          await send(each.kind === 'break' ? each.at : undefined)
          const settled = service.transfers.length
          if (each.kind !== 'break') await send()
          if (each.kind !== 'break')
            assert.equal(service.transfers.length, settled, 'the same file once more')
        }
        if (!isNamed) return
        for (const { sequence_id: id } of service.transfers) assert.match(String(id), /^r\d+$/)
        const sequences = service.transfers.map(({ sequence_id: id }) => id)
        assert.equal(new Set(sequences).size, sequences.length, 'a reference pays once')
        assert.ok(service.transfers.length <= seen.size)
      },
    ),
    { numRuns: 300 },
  )
})

test('plans a file of a thousand lines', async () => {
  const service = new Service()
  const text = file(...Array.from({ length: LINES_MAX }, (_, at) => `ETH,${at + 1},0x${at},,,`))
  assert.equal((await service.send(text)).length, LINES_MAX)
  assert.deepEqual(await service.send(text), [])
})

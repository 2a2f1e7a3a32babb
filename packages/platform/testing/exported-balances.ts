import assert from 'node:assert/strict'
import { parseAmount } from '@custody/chains'
import { call, type User } from './harness.ts'

/** More decimals than any asset has, so that sums are exact. */
const DECIMALS = 30

/** Amounts of an asset's lines in an export, as decimals without trailing zeros. */
interface Sums {
  /** Sum of `amount` minus sum of `network_fee`. */
  moved: bigint
  /** Balance of the last line. */
  closing: bigint
  lines: number
}

const amountOf = (text: string): bigint =>
  text.startsWith('-') ? -parseAmount(text.slice(1), DECIMALS) : parseAmount(text, DECIMALS)

/** Sums the lines of an export by asset. Cells that are summed contain no separators. */
export function sumsOf(csv: string): Map<string, Sums> {
  const [head = '', ...lines] = csv
    .replace(/^\ufeff/, '')
    .trimEnd()
    .split('\r\n')
  const columns = head.split(',')
  const sums = new Map<string, Sums>()
  for (const line of lines) {
    const cells = line.split(',')
    const value = (name: string) => amountOf(cells[columns.indexOf(name)] || '0')
    const asset = cells[columns.indexOf('asset')] ?? ''
    const before = sums.get(asset) ?? { moved: 0n, closing: 0n, lines: 0 }
    sums.set(asset, {
      moved: before.moved + value('amount') - value('network_fee'),
      closing: value('balance'),
      lines: before.lines + 1,
    })
  }
  return sums
}

/**
 * Asserts that the export of a sub-account's statements sums to the balance of each wallet. Reads
 * again while balances move.
 * @returns number of lines by asset, including those of the opening and closing balance
 * @throws AssertionError
 */
export async function assertExportIsTied(user: User): Promise<Map<string, number>> {
  const wallets = async () => {
    const { status, body, text } = await call<{
      data: { asset: string; total: string }[]
      has_more: boolean
    }>(user, 'GET', '/dac/v1/balances?limit=500')
    assert.equal(status, 200, text)
    assert.equal(body.has_more, false)
    return body.data.map(({ asset, total }) => [asset, amountOf(total)] as const)
  }
  let before = await wallets()
  while (true) {
    const { status, text } = await call(user, 'GET', '/dac/v1/statement/export')
    assert.equal(status, 200, text)
    const after = await wallets()
    if (String(after) !== String(before)) {
      before = after
      continue
    }
    const sums = sumsOf(text)
    assert.deepEqual(
      [...sums].map(([asset, { moved }]) => [asset, moved]).toSorted(),
      after.toSorted(),
      'the lines of each asset sum to its balance',
    )
    for (const [asset, { moved, closing }] of sums) assert.equal(closing, moved, asset)
    return new Map([...sums].map(([asset, { lines }]) => [asset, lines]))
  }
}

// What a batch asks the platform: whether its addresses are any, and what of it was ordered before.
import { assetNames } from './assets.ts'
import { validateAddress } from './ask.ts'
import type { Line } from './batch-file.ts'
import { query, read } from './http.ts'
import { mirror } from './scope.ts'
import type { TransactionPage } from './types.ts'

const AT_ONCE = 4

/** Works through a list, a few at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, items.length) }, async () => {
      while (next < items.length) await work(items[next++] as T)
    }),
  )
}

/** Has every address checked by the platform. @throws Problem where it does not answer */
export async function checkAddresses(lines: readonly Line[], told: (done: number) => void): Promise<void> {
  const answers = new Map<string, Promise<string | null>>()
  let done = 0
  await each(lines, async (line) => {
    if (assetNames.value.has(line.asset) && line.destination_address !== '') {
      const key = [line.asset, line.destination_address, line.address_tag].join(' ')
      const asked =
        answers.get(key) ??
        validateAddress(line.asset, line.destination_address, line.address_tag).then(({ valid, reason }) =>
          valid ? null : (reason ?? 'not well formed'),
        )
      answers.set(key, asked)
      const reason = await asked
      if (reason !== null) line.problems.push(`destination_address: ${reason}`)
    }
    told(++done)
  })
}

/** Those of a file that were ordered before, by their sequence_id: its transaction. */
export async function findSent(lines: readonly Line[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const ask = async (line: Line) => {
    const { data } = await read<TransactionPage>(
      mirror(`/dac/v1/transactions${query({ sequence_id: line.sequence_id, asset: line.asset, limit: 1 })}`),
    )
    if (data[0] !== undefined) found.set(line.sequence_id, data[0].id)
  }
  // A file that was never sent has neither its first line there nor its last.
  const ends = [lines[0], lines.at(-1)].filter((line) => line !== undefined)
  await each(ends, ask)
  if (found.size > 0) await each(lines, ask)
  return found
}

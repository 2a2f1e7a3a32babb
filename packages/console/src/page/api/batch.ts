// What a batch asks the platform: whether its addresses are any, and what of it was ordered before.
import { assetNames } from './assets.ts'
import { validateAddress } from './ask.ts'
import type { Line } from './batch-file.ts'
import { query, read } from './http.ts'
import { mirror } from './scope.ts'
import { isTagInMemo, tagState } from './tag.ts'
import type { AddressValidation, TransactionPage } from './types.ts'

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

/** What is wrong with a line's destination as the platform knows it. Settles whether a tag is still missing. */
function judgeDestination(line: Line, validity: AddressValidation): void {
  if (!validity.valid) {
    const reason = validity.reason ?? 'not well formed'
    line.problems.push(reason.startsWith('address_tag') ? reason : `destination_address: ${reason}`)
    return
  }
  const state = tagState(line.hasNoTag || line.address_tag !== '', validity, { tag: line.address_tag, hasNoTag: line.hasNoTag })
  line.hasNoTag = state.is === 'asked' && state.tag === ''
  if (line.hasNoTag && !line.hasTagColumn)
    line.problems.push('the file has no column address_tag: add it, and leave it empty where a payee has no tag')
  else if (line.hasNoTag && state.isRequired) line.problems.push('address_tag: this account refuses payments without one')
  else if (isTagInMemo(state, line.memo))
    line.problems.push('memo: digits there never reach the network; put them into address_tag, or a word before them')
  else if (line.hasNoTag) line.notes.push('no address_tag')
}

/** Has every address checked by the platform. @throws Problem where it does not answer */
export async function checkAddresses(lines: readonly Line[], told: (done: number) => void): Promise<void> {
  const answers = new Map<string, Promise<AddressValidation>>()
  let done = 0
  await each(lines, async (line) => {
    if (assetNames.value.has(line.asset) && line.destination_address !== '') {
      const key = [line.asset, line.destination_address, line.address_tag].join(' ')
      const asked =
        answers.get(key) ?? validateAddress(line.asset, line.destination_address, line.address_tag)
      answers.set(key, asked)
      judgeDestination(line, await asked)
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

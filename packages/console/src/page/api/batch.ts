// Queries the platform about a batch: whether its addresses are valid, and which lines were ordered
// earlier.
import { assetNames } from './assets.ts'
import { validateAddress } from './queries.ts'
import type { Earlier, Line } from './batch-line.ts'
import { attemptOf, RECENT_DAYS, type History } from './batch-plan.ts'
import { query, read } from './http.ts'
import { ofWorkspace, scope, session } from './scope.ts'
import { isTagInMemo, tagState } from './tag.ts'
import type { AddressValidation, Transaction, TransactionPage } from './types.ts'

const AT_ONCE = 4
/** Maximum page size of the API. */
const PAGE_MAX = 500

/** Processes a list, a few items concurrently. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, items.length) }, async () => {
      while (next < items.length) await work(items[next++] as T)
    }),
  )
}

/**
 * Adds the problems of a line's destination according to the platform, and determines whether a tag
 * is still missing.
 */
function judgeDestination(line: Line, validity: AddressValidation): void {
  if (!validity.valid) {
    const reason = validity.reason ?? 'not well formed'
    line.problems.push(reason.startsWith('address_tag') ? reason : `destination_address: ${reason}`)
    return
  }
  line.payee = {
    address: validity.address ?? line.destination_address,
    tag: validity.address_tag ?? '',
  }
  const state = tagState(line.hasNoTag || line.address_tag !== '', validity, {
    tag: line.address_tag,
    hasNoTag: line.hasNoTag,
  })
  line.hasNoTag = state.is === 'asked' && state.tag === ''
  if (line.hasNoTag && !line.hasTagColumn)
    line.problems.push(
      'the file has no column address_tag: add it, and leave it empty where a payee has no tag',
    )
  else if (line.hasNoTag && state.isRequired)
    line.problems.push('address_tag: this account refuses payments without one')
  else if (isTagInMemo(state, line.memo))
    line.problems.push(
      'memo: digits there never reach the network; put them into address_tag, or a word before them',
    )
  else if (line.hasNoTag) line.notes.push('no address_tag')
}

/**
 * Lets the platform validate every address.
 * @throws Problem if it does not respond
 */
export async function checkAddresses(
  lines: readonly Line[],
  onProgress: (done: number) => void,
): Promise<void> {
  const answers = new Map<string, Promise<AddressValidation>>()
  let done = 0
  await each(lines, async (line) => {
    if (assetNames.value.has(line.asset) && line.destination_address !== '') {
      const key = [line.asset, line.destination_address, line.address_tag].join(' ')
      const validation =
        answers.get(key) ?? validateAddress(line.asset, line.destination_address, line.address_tag)
      answers.set(key, validation)
      judgeDestination(line, await validation)
    }
    onProgress(++done)
  })
}

/** Converts transfers of the API, and adds the sub-account that ordered them. */
const earlierOf = (rows: readonly Transaction[], sub: string): Earlier[] =>
  rows.map(
    ({ id, asset, amount, destination_id, address_tag, status, sequence_id, created_at }) => ({
      id,
      sub_account: sub,
      asset,
      amount,
      destination_id,
      address_tag,
      status,
      sequence_id,
      created_at,
    }),
  )

/**
 * Lists all transfers of a sub-account that match a filter.
 * @throws Problem
 */
async function listAll(
  sub: string,
  filter: Record<string, string | number | undefined>,
): Promise<Earlier[]> {
  const earlier: Earlier[] = []
  for (let page = 1; ; page++) {
    const path = `${ofWorkspace(`/sub-accounts/${encodeURIComponent(sub)}`)}/api/dac/v1/transactions`
    const { data, total } = await read<TransactionPage>(
      `${path}${query({ ...filter, page, limit: PAGE_MAX })}`,
    )
    earlier.push(...earlierOf(data, sub))
    if (data.length < PAGE_MAX || page * PAGE_MAX >= total) return earlier
  }
}

/**
 * Reads earlier transfers that may match a line of the file, by destination and by reference.
 * @throws Problem if the platform does not respond; then nothing may be sent
 */
export async function readHistory(lines: readonly Line[], nowMs: number): Promise<History> {
  const { subAccount, workspace } = scope.value
  const subs = session.value?.workspaces.find(({ name }) => name === workspace)?.sub_accounts ?? [
    subAccount,
  ]
  const after = Math.floor(nowMs / 1000) - RECENT_DAYS * 86_400
  const to = new Map<string, Earlier[]>()
  const named = new Map<string, Earlier[]>()
  const good = lines.filter(({ problems }) => problems.length === 0)
  const keyOf = (asset: string, address: string) => `${asset} ${address}`
  const places = [
    ...new Map(
      good.map(({ asset, payee }) => [
        keyOf(asset, payee.address),
        { asset, address: payee.address },
      ]),
    ),
  ]
  await each(places, async ([key, { asset, address }]) => {
    const lists = await Promise.all(
      subs.map((sub) =>
        listAll(sub, {
          asset,
          dest_id: address,
          type: 'Withdraw',
          after: sub === subAccount ? undefined : after,
        }),
      ),
    )
    to.set(key, lists.flat())
  })
  const references = [
    ...new Set(good.map(({ reference }) => reference).filter((text) => text !== '')),
  ]
  await each(references, async (reference) => {
    const earlier: Earlier[] = []
    for (const sub of subs) {
      for (let attempt = 1; ; attempt++) {
        const rows = await listAll(sub, { sequence_id: attemptOf(reference, attempt) })
        if (rows.length === 0) break
        earlier.push(...rows)
      }
    }
    named.set(reference, earlier)
  })
  return {
    subAccount,
    to: (asset, address) => to.get(keyOf(asset, address)) ?? [],
    named: (reference) => named.get(reference) ?? [],
  }
}

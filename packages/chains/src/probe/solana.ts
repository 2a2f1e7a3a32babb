import { jsonRpc, RpcRefused, type JsonRpc } from '../rpc.ts'
import { SYSTEM_PROGRAM } from '../solana/address.ts'
import { SolanaClient } from '../solana/rpc.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'
import { isNotServed } from './report.ts'

/** Number of slots below the newest one at which a block is searched. */
const SLOTS_BACK = 20
const HISTORY = 'use a node with --enable-rpc-transaction-history'
const FINALIZED = { commitment: 'finalized' }

interface Context<T> {
  context: { slot: number }
  value: T
}
interface Head {
  blockTime: number | null
  parentSlot: number
}
interface Block extends Head {
  transactions: { transaction: { signatures: string[]; accountKeys: { pubkey: string }[] } }[]
}

/** Solana: checks the requests that `SolanaClient` and its search of an account's history send. */
export const solana: FamilyProbe = {
  client: ({ network, assets, endpoint, fetch }) =>
    new SolanaClient(network, assets, endpoint, fetch),

  async run(context) {
    const { endpoint, fetch, report } = context
    const call = jsonRpc(endpoint, fetch)
    const headOf = (slot: number) =>
      call<Head | null>('getBlock', [
        slot,
        {
          ...FINALIZED,
          transactionDetails: 'none',
          maxSupportedTransactionVersion: 1,
          rewards: false,
        },
      ])
    const tip = await checkHead(context, call)
    if (tip === undefined) return null
    const slot = await checkSlots(context, call, tip)
    if (slot === undefined) return null
    const block = await checkScan(context, call, slot)
    if (!block) return null
    const mark: BlockMark = { height: slot, time: block.blockTime ?? 0 }
    await checkTransactions(context, call, block, tip)
    await checkAccounts(context, call)
    await measureHistory(report, 'getBlock', mark, 0, async (height) => {
      try {
        const [result] = await call<number[]>('getBlocksWithLimit', [height, 1, FINALIZED])
        // If the next slot with a block is far away, the endpoint has deleted the blocks in
        // between.
        if (result === undefined || result > height + SLOTS_BACK * 10) return null
        const head = await headOf(result)
        return head && { height: result, time: head.blockTime ?? 0 }
      } catch (error) {
        if (error instanceof RpcRefused && !isNotServed(error, report.questions.last)) return null
        throw error
      }
    })
    await checkBroadcast(report, 'sendTransaction', NEEDED, async () => {
      await call('sendTransaction', [
        'AA==',
        { encoding: 'base64', preflightCommitment: 'confirmed', maxRetries: 0 },
      ])
      return true
    })
    return mark
  },
}

/**
 * Reads only one block, as a scan does.
 * @returns the number of payments
 */
async function paymentsOf(
  { network, assets, endpoint, fetch }: ProbeContext,
  slot: number,
): Promise<number> {
  const block = await new SolanaClient(network, assets, endpoint, fetch).block(slot)
  if (!block) throw new Error(`getBlock no longer returns slot ${slot}`)
  return block.transfers.length
}

async function checkTransactions(
  { report }: ProbeContext,
  call: JsonRpc,
  block: Block,
  tip: number,
): Promise<void> {
  const [first] = block.transactions
  const signature = first?.transaction.signatures[0] ?? '1'.repeat(64)
  await report.check(
    { code: 'statuses', what: 'getSignatureStatuses', advice: HISTORY },
    async () => {
      const { value } = await call<Context<unknown[]>>('getSignatureStatuses', [
        [signature],
        { searchTransactionHistory: true },
      ])
      if (first && !value[0])
        throw new Error(`getSignatureStatuses does not return ${signature} of a finalized block`)
    },
  )
  await report.check({ code: 'transaction', what: 'getTransaction', advice: HISTORY }, async () => {
    for (const encoding of ['json', 'base64']) {
      const result = await call<unknown>('getTransaction', [
        signature,
        { ...FINALIZED, encoding, maxSupportedTransactionVersion: 1 },
      ])
      if (first && !result)
        throw new Error(`getTransaction does not return ${signature} of a finalized block`)
    }
  })
  await report.check(
    {
      code: 'account_history',
      what: 'getSignaturesForAddress',
      advice: `${HISTORY}: without it, the expiry of transfers cannot be proven`,
    },
    async () => {
      const account = first?.transaction.accountKeys[0]?.pubkey ?? SYSTEM_PROGRAM
      const entries = await call<unknown>('getSignaturesForAddress', [
        account,
        { ...FINALIZED, limit: 1, minContextSlot: tip },
      ])
      if (!Array.isArray(entries)) throw new Error('getSignaturesForAddress returns no list')
      if (first && entries.length === 0)
        throw new Error(
          `getSignaturesForAddress returns no transaction of ${account}, which has one`,
        )
    },
  )
  await report.check({ code: 'epoch', what: 'getEpochInfo', advice: NEEDED }, async () => {
    const { absoluteSlot, blockHeight } = await call<{
      absoluteSlot?: unknown
      blockHeight?: unknown
    }>('getEpochInfo', [FINALIZED])
    if (!Number.isSafeInteger(absoluteSlot) || !Number.isSafeInteger(blockHeight))
      throw new Error('getEpochInfo returns no slot or height')
  })
  await report.check({ code: 'oldest', what: 'getFirstAvailableBlock', advice: NEEDED }, () =>
    call<unknown>('getFirstAvailableBlock', []),
  )
}

async function checkAccounts(
  { report, network, assets, endpoint, fetch }: ProbeContext,
  call: JsonRpc,
): Promise<void> {
  const client = new SolanaClient(network, assets, endpoint, fetch)
  await report.check({ code: 'account', what: 'getAccountInfo', advice: NEEDED }, async () => {
    await client.account(SYSTEM_PROGRAM)
  })
  await report.check({ code: 'balance', what: 'getBalance', advice: NEEDED }, () =>
    call<unknown>('getBalance', [SYSTEM_PROGRAM, FINALIZED]),
  )
  const token = assets.find(({ type }) => type === 'token')
  if (token) {
    await report.check(
      { code: 'token_accounts', what: 'getTokenAccountsByOwner', advice: NEEDED },
      async () => {
        await client.balance(SYSTEM_PROGRAM, token)
      },
    )
  }
  await report.check(
    { code: 'rent', what: 'getMinimumBalanceForRentExemption', advice: NEEDED },
    async (say) => say.note(`an account must keep ${await client.rent()} lamports`),
  )
  await report.check(
    { code: 'fee_rates', what: 'getRecentPrioritizationFees', advice: NEEDED },
    async (say) => {
      const { low, high } = await client.unitPrices()
      say.note(`${low} to ${high} millionths of a lamport per compute unit`)
    },
  )
}

/** Checks the newest slot and returns it; undefined if the check failed. */
async function checkHead({ report }: ProbeContext, call: JsonRpc): Promise<number | undefined> {
  return report.check({ code: 'head', what: 'getLatestBlockhash', advice: NEEDED }, async (say) => {
    const {
      context: { slot },
    } = await call<Context<unknown>>('getLatestBlockhash', [FINALIZED])
    await call<Context<unknown>>('getLatestBlockhash', [{ commitment: 'confirmed' }])
    say.note(`slot ${slot}`)
    return slot
  })
}

/** Searches the newest slot that has a block and returns it; undefined if the check failed. */
async function checkSlots(
  { report }: ProbeContext,
  call: JsonRpc,
  tip: number,
): Promise<number | undefined> {
  return report.check(
    { code: 'slots', what: 'getBlocksWithLimit', advice: NEEDED },
    async (say) => {
      const from = Math.max(0, tip - SLOTS_BACK)
      const slots = await call<number[]>('getBlocksWithLimit', [from, tip - from + 1, FINALIZED])
      const newest = Array.isArray(slots) ? slots.at(-1) : undefined
      if (newest === undefined)
        throw new Error(`getBlocksWithLimit returns no slot with a block from ${from} on`)
      const time = await call<number | null>('getBlockTime', [newest]).catch((error: unknown) => {
        if (error instanceof RpcRefused) return null
        throw error
      })
      if (time === null) say.note('getBlockTime returns no time: the age of blocks is not checked')
      return newest
    },
  )
}

/** Reads a block as a scan does and returns it; undefined if the check failed. */
async function checkScan(
  context: ProbeContext,
  call: JsonRpc,
  slot: number,
): Promise<Block | undefined> {
  return context.report.check(
    {
      code: 'scan',
      what: 'getBlock',
      advice: 'use another endpoint: deposits cannot be read from this one',
    },
    async (say) => {
      const block = await call<Block | null>('getBlock', [
        slot,
        {
          ...FINALIZED,
          encoding: 'json',
          transactionDetails: 'accounts',
          maxSupportedTransactionVersion: 1,
          rewards: false,
        },
      ])
      if (!block)
        throw new Error(`getBlock does not return slot ${slot}, which getBlocksWithLimit returned`)
      const payments = await paymentsOf(context, slot)
      say.note(
        `slot ${slot} can be read as in a scan, with transactions of versions 0 and 1, and ${payments} payments`,
      )
      return block
    },
  )
}

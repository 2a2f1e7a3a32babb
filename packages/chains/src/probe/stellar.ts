import { jsonRpc, RpcRefused, type JsonRpc } from '../rpc.ts'
import { SECONDS_TO_LIVE } from '../stellar/build.ts'
import { StellarClient } from '../stellar/rpc.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'
import { isNotServed } from './report.ts'

/** The account whose key is all zeros. */
const ZERO_ACCOUNT = 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF'
/** Seconds of history that an endpoint must keep in addition to a transaction's lifetime. */
const MARGIN_S = 60

interface Ledgers {
  ledgers?: { sequence: number; ledgerCloseTime: string | number }[]
}
interface Found {
  status: string
  latestLedgerCloseTime?: string | number
  oldestLedgerCloseTime?: string | number
}

/** Stellar: checks the requests that `StellarClient` sends. */
export const stellar: FamilyProbe = {
  client: ({ network, endpoint, fetch }) => new StellarClient(network, endpoint, fetch),

  async run(context) {
    const { network, endpoint, fetch, report } = context
    const call = jsonRpc(endpoint, fetch)
    const client = new StellarClient(network, endpoint, fetch)
    const keptMarkOf = (sequence: number): Promise<BlockMark | null> =>
      markOf(call, sequence).catch((error: unknown) => {
        if (error instanceof RpcRefused && !isNotServed(error, report.questions.last)) return null
        throw error
      })
    const height = await report.check(
      { code: 'head', what: 'getLatestLedger', advice: NEEDED },
      async (say) => {
        const { height: sequence } = await client.tip()
        if (!Number.isSafeInteger(sequence)) throw new Error('getLatestLedger returns no sequence')
        say.note(`ledger ${sequence}`)
        return sequence
      },
    )
    if (height === undefined) return null
    const mark = await report.check(
      { code: 'ledgers', what: 'getLedgers', advice: NEEDED },
      async () => {
        const result = await markOf(call, height)
        if (!result || !Number.isSafeInteger(result.time)) {
          throw new Error(
            `getLedgers does not return the newest ledger ${height} with ledgerCloseTime`,
          )
        }
        return result
      },
    )
    if (!mark) return null
    await checkScan(context, client, height)
    await checkRetention(context, call, keptMarkOf)
    await report.check({ code: 'account', what: 'getLedgerEntries', advice: NEEDED }, async () => {
      await client.account(ZERO_ACCOUNT)
    })
    await report.check(
      { code: 'reserve', what: 'the reserve of an account', advice: NEEDED },
      async (say) => say.note(`a new account requires ${await client.activation()} stroops`),
    )
    await report.check({ code: 'fee_rates', what: 'getFeeStats', advice: NEEDED }, async (say) => {
      const { low, high } = await client.feeRates()
      say.note(`${low} to ${high} stroops`)
    })
    await measureHistory(report, 'getLedgers', mark, 1, async (sequence) => {
      const result = await keptMarkOf(sequence)
      if (result) await call('getTransactions', { startLedger: sequence, pagination: { limit: 1 } })
      return result
    })
    await checkBroadcast(
      report,
      'sendTransaction',
      NEEDED,
      async () =>
        (await call<{ status?: string }>('sendTransaction', { transaction: 'AAAA' })).status !==
        'ERROR',
    )
    return mark
  },
}

/** Returns a ledger's height and time; null if the endpoint returns another ledger. */
async function markOf(call: JsonRpc, height: number): Promise<BlockMark | null> {
  const { ledgers } = await call<Ledgers>('getLedgers', {
    startLedger: height,
    pagination: { limit: 1 },
  })
  const [ledger] = ledgers ?? []
  return ledger && Number(ledger.sequence) === height
    ? { height, time: Number(ledger.ledgerCloseTime) }
    : null
}

/**
 * Checks that the endpoint retains transactions longer than a transfer lives.
 * @param keptMarkOf returns a ledger; null if it is no longer retained
 */
async function checkRetention(
  { report }: ProbeContext,
  call: JsonRpc,
  keptMarkOf: (sequence: number) => Promise<BlockMark | null>,
): Promise<void> {
  await report.check(
    {
      code: 'transaction',
      what: 'getTransaction',
      advice:
        'use an endpoint with a longer retention window: without it, expired transfers never end',
    },
    async (say) => {
      const result = await call<Found>('getTransaction', { hash: '0'.repeat(64) })
      const seconds = Number(result.latestLedgerCloseTime) - Number(result.oldestLedgerCloseTime)
      if (!Number.isFinite(seconds))
        throw new Error('getTransaction returns no latestLedgerCloseTime and oldestLedgerCloseTime')
      if (seconds < SECONDS_TO_LIVE + MARGIN_S) {
        if (await keptMarkOf(1))
          return say.note('getTransaction has all ledgers of this young network')
        throw new Error(
          `getTransaction retains ${seconds} s, and a transfer lives ${SECONDS_TO_LIVE} s`,
        )
      }
      return say.note(`getTransaction retains ${(seconds / 86_400).toFixed(1)} days`)
    },
  )
}

/** Reads the newest ledger as a scan does. */
async function checkScan(
  { report }: ProbeContext,
  client: StellarClient,
  height: number,
): Promise<void> {
  await report.check(
    {
      code: 'scan',
      what: 'getTransactions',
      advice: 'use another endpoint: deposits cannot be read from this one',
    },
    async (say) => {
      const block = await client.block(height)
      if (!block) throw new Error(`getLedgers does not return the newest ledger ${height}`)
      say.note(`ledger ${height} can be read as in a scan, with ${block.transfers.length} payments`)
    },
  )
}

import { jsonRpc, RpcRefused } from '../rpc.ts'
import { LEDGERS_TO_LIVE } from '../xrp/build.ts'
import { XrpClient } from '../xrp/rpc.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'

/** The account that exists in the first ledger of every network. */
const GENESIS_ACCOUNT = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
/** Seconds from the Unix epoch to the ledger's epoch. */
const RIPPLE_EPOCH = 946_684_800
/**
 * Number of ledgers in which a client searches for a transaction; it exceeds the transaction's
 * lifetime.
 */
const SEARCHED_LEDGERS = LEDGERS_TO_LIVE + 40

interface Result {
  status?: string
  error?: string
  error_message?: string
  error_code?: number
  searched_all?: boolean
}
interface Validated extends Result {
  info: { complete_ledgers?: string; validated_ledger?: { seq: number; hash: string } }
}
interface Ledger extends Result {
  validated?: boolean
  ledger?: { close_time?: number }
}
interface History extends Result {
  validated?: boolean
  ledger_index_min?: number
  ledger_index_max?: number
}

class Refused extends RpcRefused {
  readonly result: Result
  constructor(result: Result) {
    super(
      result.error_code ?? 0,
      `${result.error ?? 'unknown'}: ${result.error_message ?? 'refused'}`.slice(0, 300),
    )
    this.result = result
  }
}

type Call = <T extends Result>(method: string, parameters?: Record<string, unknown>) => Promise<T>

/** XRP Ledger: checks the requests that `XrpClient` sends. */
export const xrp: FamilyProbe = {
  client: ({ network, endpoint, fetch }) => new XrpClient(network, endpoint, fetch),

  async run(context) {
    const { network, endpoint, fetch, report } = context
    const client = new XrpClient(network, endpoint, fetch)
    const call = rippledCall(context)
    const mark = await checkHead(context, call)
    if (!mark) return null
    await report.check(
      {
        code: 'scan',
        what: 'ledger',
        advice: 'use another endpoint: deposits cannot be read from this one',
      },
      async (say) => {
        const block = await client.block(mark.height)
        if (!block)
          throw new Error(
            `ledger does not return ${mark.height} as validated: the servers behind the address do not agree`,
          )
        say.note(
          `ledger ${mark.height} can be read as in a scan, with ${block.transfers.length} payments`,
        )
      },
    )
    await checkHistory(context, call, mark)
    await report.check({ code: 'account', what: 'account_info', advice: NEEDED }, async () => {
      await client.account(GENESIS_ACCOUNT)
    })
    await report.check({ code: 'reserve', what: 'reserves', advice: NEEDED }, async (say) =>
      say.note(`a new account requires ${await client.activation()} drops`),
    )
    await report.check({ code: 'fee_rates', what: 'fee', advice: NEEDED }, async (say) => {
      const { low, high } = await client.feeRates()
      say.note(`${low} to ${high} drops`)
    })
    await measureHistory(report, 'ledger', mark, 1, async (height) => {
      try {
        const ledger = await call<Ledger>('ledger', {
          ledger_index: height,
          transactions: true,
          expand: true,
        })
        return ledger.validated === true ? { height, time: timeOf(ledger) } : null
      } catch (error) {
        if (error instanceof Refused && error.result.error === 'lgrNotFound') return null
        throw error
      }
    })
    await checkBroadcast(report, 'submit', NEEDED, async () => {
      await call('submit', { tx_blob: '00' })
      return true
    })
    return mark
  },
}

/** Returns the function that sends one request; it throws an error that rippled returns. */
function rippledCall({ endpoint, fetch }: ProbeContext): Call {
  const json = jsonRpc(endpoint, fetch)
  return async <T extends Result>(
    method: string,
    parameters: Record<string, unknown> = {},
  ): Promise<T> => {
    const result = await json<T>(method, [{ ...parameters, api_version: 1 }])
    if (typeof result !== 'object' || result === null)
      throw new Error(`${method}: the response is not in the format of rippled`)
    if (result.status === 'error' || result.error !== undefined) throw new Refused(result)
    return result
  }
}

/** Returns the closing time of a ledger, in Unix seconds. */
function timeOf({ ledger }: Ledger): number {
  if (typeof ledger?.close_time !== 'number') throw new Error('ledger returns no close_time')
  return ledger.close_time + RIPPLE_EPOCH
}

/** Checks that an expired transfer can be searched in every ledger of its lifetime. */
async function checkHistory({ report }: ProbeContext, call: Call, mark: BlockMark): Promise<void> {
  const from = Math.max(1, mark.height - SEARCHED_LEDGERS)
  await report.check(
    {
      code: 'transaction',
      what: 'tx',
      advice:
        'use a server whose ledger_history covers an hour: without it, expired transfers never end',
    },
    async (say) => {
      try {
        await call('tx', {
          transaction: '0'.repeat(64),
          binary: false,
          min_ledger: from,
          max_ledger: mark.height,
        })
      } catch (error) {
        if (!(error instanceof Refused) || error.result.error !== 'txnNotFound') throw error
        if (error.result.searched_all !== true) {
          throw new Error(`tx has not searched all ledgers from ${from} to ${mark.height}`, {
            cause: error,
          })
        }
      }
      say.note(`tx searches all ledgers from ${from} to ${mark.height}`)
    },
  )
  await report.check(
    {
      code: 'account_history',
      what: 'account_tx',
      advice: 'use a server whose ledger_history covers an hour',
    },
    async (say) => {
      try {
        const history = await call<History>('account_tx', {
          account: GENESIS_ACCOUNT,
          ledger_index_min: from,
          ledger_index_max: mark.height,
          binary: true,
          limit: 10,
        })
        const isWhole =
          history.validated === true &&
          Number(history.ledger_index_min) <= from &&
          Number(history.ledger_index_max) >= mark.height
        if (!isWhole)
          throw new Error(`account_tx does not cover all ledgers from ${from} to ${mark.height}`)
      } catch (error) {
        if (!(error instanceof Refused) || error.result.error !== 'actNotFound') throw error
      }
      say.note(`account_tx covers all ledgers from ${from} to ${mark.height}`)
    },
  )
}

/** Checks the newest validated ledger and returns it; undefined if the check failed. */
async function checkHead({ report }: ProbeContext, call: Call): Promise<BlockMark | undefined> {
  return report.check(
    { code: 'head', what: 'server_info', advice: NEEDED },
    async (say): Promise<BlockMark> => {
      const { info } = await call<Validated>('server_info')
      if (!info.validated_ledger)
        throw new Error(
          'server_info returns no validated_ledger: the server is still synchronising',
        )
      const { seq } = info.validated_ledger
      say.note(
        `ledger ${seq}; the server has the ledgers ${String(info.complete_ledgers ?? 'unknown').slice(0, 60)}`,
      )
      return { height: seq, time: timeOf(await call<Ledger>('ledger', { ledger_index: seq })) }
    },
  )
}

import { jsonRpc, NoFeeEstimate, RpcRefused, type JsonRpc } from '../rpc.ts'
import { UtxoClient } from '../utxo/rpc.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'
import { isNotServed } from './report.ts'

/**
 * Age, in blocks, of the block whose transactions are queried, because their outputs are probably
 * spent, and the number of its transactions that are queried.
 */
const OLDER_BLOCKS = 500
const OLDER_TRANSACTIONS = 3
const INDEX_ADVICE =
  'set txindex=1 at the node and let it finish its index, or use another endpoint'

interface Header {
  height: number
  time: number
}
interface BlockIds {
  hash: string
  tx: string[]
}

/** Bitcoin and its derivatives: checks the requests that `UtxoClient` sends. */
export const utxo: FamilyProbe = {
  client: ({ network, endpoint, fetch }) => new UtxoClient(network, endpoint, fetch),

  async run(context) {
    const { network, endpoint, fetch, report } = context
    const call = jsonRpc(endpoint, fetch)
    const client = new UtxoClient(network, endpoint, fetch)
    const headerAt = async (height: number): Promise<Header & { hash: string }> => {
      const hash = await call<string>('getblockhash', [height])
      return { ...(await call<Header>('getblockheader', [hash])), hash }
    }
    const head = await checkHead(context, call)
    if (head === undefined) return null
    const newest = await report.check(
      { code: 'header', what: 'getblockheader', advice: NEEDED },
      async () => {
        const header = await headerAt(head)
        if (!Number.isSafeInteger(header.time)) throw new Error('getblockheader returns no time')
        return header
      },
    )
    if (!newest) return null
    const mark: BlockMark = { height: head, time: newest.time }
    await report.check(
      {
        code: 'scan',
        what: 'getblock',
        advice: 'use another endpoint: deposits cannot be read from this one',
      },
      async (say) => {
        const block = await client.block(head)
        if (!block)
          throw new Error(
            `getblock does not return block ${head}: the nodes behind the address do not agree`,
          )
        say.note(`block ${head} can be read as in a scan, with ${block.transfers.length} payments`)
      },
    )
    await checkChainLock(context, call, newest.hash)
    await checkIndex(context, call, client, head)
    await checkPool(context, call, client)
    await checkFees(context, call, client)
    await measureHistory(report, 'getblock', mark, 0, async (height) => {
      try {
        const { hash, time } = await headerAt(height)
        await call('getblock', [hash, network.utxo?.block_verbosity === 1 ? true : 1])
        return { height, time }
      } catch (error) {
        if (error instanceof RpcRefused && !isNotServed(error, report.questions.last)) return null
        throw error
      }
    })
    await checkBroadcast(report, 'sendrawtransaction', NEEDED, async () => {
      await call('sendrawtransaction', ['00'])
      return true
    })
    return mark
  },
}

/** Dash: checks whether block responses contain the ChainLock status. */
async function checkChainLock(
  { network, report }: ProbeContext,
  call: JsonRpc,
  hash: string,
): Promise<void> {
  const least = network.utxo?.chainlock_confirmations
  if (least === undefined) return
  const without = `a payment is final after ${String(network.confirmations)} confirmations, not after ${least}`
  await report.check(
    {
      code: 'chainlock',
      what: 'chainlock',
      advice: 'use a Dash Core node with ChainLocks',
      without,
    },
    async (say) => {
      const { chainlock } = await call<{ chainlock?: unknown }>('getblock', [hash, 1])
      if (typeof chainlock !== 'boolean') throw new Error('getblock returns no chainlock')
      say.note('blocks report their ChainLocks')
    },
  )
}

async function checkIndex(
  { report, network }: ProbeContext,
  call: JsonRpc,
  client: UtxoClient,
  head: number,
): Promise<void> {
  // The genesis block's transaction is in no index.
  const height = Math.max(1, head - OLDER_BLOCKS)
  const txids = await report.check(
    { code: 'transaction_index', what: 'getrawtransaction', advice: INDEX_ADVICE },
    async (say) => {
      if (head < 1) {
        say.note('there is no block after the first one for the check of getrawtransaction')
        return []
      }
      const hash = await call<string>('getblockhash', [height])
      const { tx } = await call<BlockIds>('getblock', [
        hash,
        network.utxo?.block_verbosity === 1 ? true : 1,
      ])
      const older = tx.slice(0, OLDER_TRANSACTIONS)
      for (const txid of older) {
        try {
          const result = await call<{ txid?: string }>('getrawtransaction', [txid, true])
          if (result.txid !== txid)
            throw new Error(`getrawtransaction returns another transaction than ${txid}`)
        } catch (error) {
          if (!(error instanceof RpcRefused) || isNotServed(error, report.questions.last))
            throw error
          const reason = `getrawtransaction does not return a transaction of block ${height}: the node has no transaction index`
          throw new Error(reason, { cause: error })
        }
      }
      const { lacks } = await client.head()
      if (lacks !== null) throw new Error(lacks)
      say.note(`getrawtransaction returns transactions of block ${height}`)
      return older
    },
  )
  const txid = txids?.[0] ?? '0'.repeat(64)
  if (txids && txids.length > 0) {
    await report.check(
      { code: 'raw_transaction', what: 'getrawtransaction in hex', advice: NEEDED },
      async () => {
        const raw = await call<unknown>('getrawtransaction', [txid, false])
        if (typeof raw !== 'string') throw new Error('getrawtransaction returns no hex')
      },
    )
  }
  await report.check(
    {
      code: 'unspent',
      what: 'gettxout',
      advice: NEEDED,
    },
    async () => {
      await call<unknown>('gettxout', [txid, 0, true])
    },
  )
}

async function checkPool(
  { report }: ProbeContext,
  call: JsonRpc,
  client: UtxoClient,
): Promise<void> {
  await report.check(
    {
      code: 'mempool',
      what: 'getrawmempool',
      advice: 'use an endpoint that serves it, if invoices are paid on this network',
      without:
        'payments of invoices appear when they are in a block, not while they are unconfirmed',
    },
    async (say) => say.note(`${(await client.waiting()).length} transactions are waiting`),
  )
  await report.check(
    {
      code: 'least_rate',
      what: 'getmempoolinfo',
      advice: 'prefer an endpoint that serves it',
      without: 'the minimum rate of the node is unknown, and a transaction below it is rejected',
    },
    async () => {
      const { mempoolminfee, minrelaytxfee } = await call<{
        mempoolminfee?: unknown
        minrelaytxfee?: unknown
      }>('getmempoolinfo', [])
      const isThere = [mempoolminfee, minrelaytxfee].some((each) => typeof each === 'number')
      if (!isThere) throw new Error('getmempoolinfo returns no mempoolminfee')
    },
  )
}

async function checkFees(
  { report, network }: ProbeContext,
  call: JsonRpc,
  client: UtxoClient,
): Promise<void> {
  const floors = network.utxo?.fee_floors !== undefined
  const advice = 'use a node that estimates fees, or set fee_floors in custody.config.json'
  const without = floors ? 'the rates are the configured floors' : undefined
  const served = await report.check(
    {
      code: 'fee_estimate',
      what: 'estimatesmartfee or estimatefee',
      advice,
      ...(without === undefined ? {} : { without }),
      when: (error) => error instanceof RpcRefused && error.rpcCode === -32601,
    },
    async (say) => {
      try {
        await call('estimatesmartfee', [6])
      } catch (error) {
        if (!isNotServed(error, report.questions.last)) throw error
        await call('estimatefee', [])
        say.note('estimatefee is served')
        return true
      }
      say.note('estimatesmartfee is served')
      return true
    },
  )
  if (served === undefined) return
  await report.check(
    {
      code: 'fee_rates',
      what: 'fee rates',
      advice,
      without: 'transfers without a fee_rate of their own wait until the node has an estimate',
    },
    async (say) => {
      try {
        const { low, high } = await client.feeRates()
        const text = `${low} to ${high} satoshi per 1000 vbytes`
        if (client.feeReading?.basis === 'configured')
          say.limited(`the node has no estimate now: the rates are the floors, ${text}`)
        else say.note(text)
      } catch (error) {
        if (error instanceof NoFeeEstimate)
          throw new Error('the node has no estimate of fee rates now', { cause: error })
        throw error
      }
    },
  )
}

/** Checks that the node is synchronised, and returns its height; undefined if the check failed. */
async function checkHead({ report }: ProbeContext, call: JsonRpc): Promise<number | undefined> {
  return report.check({ code: 'head', what: 'getblockchaininfo', advice: NEEDED }, async (say) => {
    interface Info {
      blocks: number
      headers?: number
      initialblockdownload?: boolean
    }
    const {
      blocks,
      headers = blocks,
      initialblockdownload: isSyncing,
    } = await call<Info>('getblockchaininfo', [])
    if (!Number.isSafeInteger(blocks)) throw new Error('getblockchaininfo returns no blocks')
    if (isSyncing === true && headers > blocks)
      throw new Error(`the node is still synchronising: it has ${blocks} of ${headers} blocks`)
    say.note(`block ${blocks}`)
    return blocks
  })
}

import { isBloom, TRANSFER_TOPIC } from '../evm/bloom.ts'
import { EvmClient } from '../evm/rpc.ts'
import {
  Answer,
  checkBlock,
  checkLogs,
  positive,
  type RpcBlock,
  type RpcReceipt,
} from '../evm/rpc-types.ts'
import { jsonRpc, RpcRefused, type JsonRpc } from '../rpc.ts'
import { ChainError } from '../types.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'
import { isNotServed, type Check } from './report.ts'

/** An address whose key is unknown. Nothing is sent to it. */
const ADDRESS = '0x000000000000000000000000000000000000dEaD'
const BALANCE_OF = '0x70a08231'
/** getL1Fee(bytes) and getOperatorFee(uint256) of the GasPriceOracle (OP Stack). */
const GET_L1_FEE = '0x49948e0e'
const GET_OPERATOR_FEE = '0x275aedd2'
/**
 * Error codes of endpoints that do not serve a method, or not by a block's hash. For these, and
 * only these, `EvmClient` has a fallback.
 */
const NOT_SERVED: readonly number[] = [-32601, -32602, -32004]
const isNotThere = (error: unknown): boolean =>
  error instanceof RpcRefused && NOT_SERVED.includes(error.rpcCode)
/** Returns whether the method is unknown, or its response lacks the value. */
const isUnknown = (error: unknown): boolean =>
  error instanceof RpcRefused ? error.rpcCode === -32601 : !(error instanceof ChainError)
/** Maximum number of blocks that are read to find one with a transaction. */
const BLOCKS_MAX = 10
const RANGE_BLOCKS = 10
const RECEIPTS = 'eth_getTransactionReceipt'

type TimedBlock = RpcBlock & { timestamp?: string }
type BlockWithIds = Omit<TimedBlock, 'transactions'> & { transactions: string[] }

const word = (value: bigint | string): string =>
  (typeof value === 'bigint' ? value.toString(16) : value).padStart(64, '0')
const hex = (value: number): string => `0x${value.toString(16)}`

/** EVM networks: checks the requests that `EvmClient` sends. */
export const evm: FamilyProbe = {
  client: ({ network, assets, endpoint, fetch }) => new EvmClient(network, assets, endpoint, fetch),

  async run(context) {
    const { network, endpoint, fetch, report } = context
    const call = jsonRpc(endpoint, fetch)
    const answer = new Answer(network.code, 'eth_getBlockByNumber')
    const latest = await report.check(
      { code: 'head', what: 'eth_getBlockByNumber', advice: NEEDED },
      async (say) => {
        const block = await call<TimedBlock | null>('eth_getBlockByNumber', ['latest', true])
        if (!block)
          throw new Error(
            'eth_getBlockByNumber returns no newest block: the node is still synchronising',
          )
        checkBlock(network.code, block, Number(block.number))
        say.note(`block ${Number(block.number)} with ${block.transactions.length} transactions`)
        return {
          block,
          mark: {
            height: Number(block.number),
            time: Number(answer.quantity(block.timestamp, 'timestamp')),
          },
        }
      },
    )
    if (!latest) return null
    const { block: head, mark } = latest
    if (network.confirmations === null) await checkFinal(context, call, mark)
    const paying = await findPaying(call, head)
    const tokens = context.assets.flatMap(({ contract_address: contract }) =>
      contract === null ? [] : [contract],
    )
    await checkBlocks(context, call, head)
    if (tokens.length > 0) await checkLogAnswers(context, call, head, tokens)
    await checkTransactions(context, call, paying)
    await checkState(context, call, head, tokens)
    await checkRollUp(context, call)
    const read = tokens.length > 0 ? 'blocks with logs and receipts' : 'blocks with receipts'
    await measureHistory(report, read, mark, 0, readerOf(context, call, tokens))
    await checkBroadcast(report, 'eth_sendRawTransaction', NEEDED, async () => {
      // An empty list, which cannot be parsed as a transaction.
      await call('eth_sendRawTransaction', ['0xc0'])
      return true
    })
    return mark
  },
}

async function checkFinal(
  { report, network }: ProbeContext,
  call: JsonRpc,
  head: BlockMark,
): Promise<void> {
  const advice = `use an endpoint that serves the tag: finality of deposits and transfers of ${network.code} depends on it`
  await report.check({ code: 'final', what: 'the tag finalized', advice }, async (say) => {
    const block = await call<RpcBlock | null>('eth_getBlockByNumber', ['finalized', false])
    if (!block) throw new Error('eth_getBlockByNumber returns no block for the tag finalized')
    checkBlock(network.code, block, null)
    say.note(
      `the finalized block is ${head.height - Number(block.number)} blocks behind the newest`,
    )
  })
}

/** Returns the newest block that has a transaction; null if the last blocks have none. */
async function findPaying(call: JsonRpc, head: TimedBlock): Promise<TimedBlock | null> {
  let block: TimedBlock | null = head
  for (
    let back = 1;
    block && block.transactions.length === 0 && back <= BLOCKS_MAX && back <= Number(head.number);
    back++
  ) {
    block = await call<TimedBlock | null>('eth_getBlockByNumber', [
      hex(Number(head.number) - back),
      true,
    ]).catch(() => null)
  }
  return block && block.transactions.length > 0 ? block : null
}

async function checkBlocks(
  { report, network }: ProbeContext,
  call: JsonRpc,
  head: TimedBlock,
): Promise<void> {
  const unnoticed = 'missing logs are not detected, and logs are not queried by range'
  await report.check(
    {
      code: 'logs_bloom',
      what: 'logsBloom',
      advice: 'prefer an endpoint that returns it',
      without: unnoticed,
    },
    async (say) => {
      if (!isBloom(head.logsBloom)) throw new Error('eth_getBlockByNumber returns no logsBloom')
      say.note('blocks have a logsBloom')
    },
  )
  await report.check(
    { code: 'block_by_hash', what: 'eth_getBlockByHash', advice: NEEDED },
    async () => {
      const block = await call<RpcBlock | null>('eth_getBlockByHash', [head.hash, false])
      if (block?.hash !== head.hash)
        throw new Error(`eth_getBlockByHash does not return the newest block ${head.hash}`)
    },
  )
  await report.check(
    {
      code: 'transaction_count',
      what: 'eth_getBlockTransactionCountByHash',
      advice: 'prefer an endpoint that serves it',
      without: 'a block without its transactions is not detected',
      when: isNotThere,
    },
    async () => {
      const count = await call<unknown>('eth_getBlockTransactionCountByHash', [head.hash])
      new Answer(network.code, 'eth_getBlockTransactionCountByHash').quantity(count, 'count')
    },
  )
  await report.check(
    {
      code: 'receipts_together',
      what: 'eth_getBlockReceipts',
      advice: 'prefer an endpoint that serves it',
      without: 'where logs are in doubt, receipts are read one by one',
      when: isNotThere,
    },
    async () => {
      const receipts = await call<unknown>('eth_getBlockReceipts', [head.hash])
      new Answer(network.code, 'eth_getBlockReceipts').list(receipts, 'receipts')
    },
  )
}

async function checkLogAnswers(
  { report, network }: ProbeContext,
  call: JsonRpc,
  head: TimedBlock,
  tokens: string[],
): Promise<void> {
  const question = { address: tokens.map((each) => each.toLowerCase()), topics: [TRANSFER_TOPIC] }
  await report.check(
    {
      code: 'logs_by_hash',
      what: 'eth_getLogs by blockHash',
      advice: 'use an endpoint that serves it: deposits of tokens are read from it',
    },
    async () =>
      checkLogs(
        network.code,
        'eth_getLogs',
        head,
        await call<unknown>('eth_getLogs', [{ ...question, blockHash: head.hash }]),
      ),
  )
  await report.check(
    {
      code: 'logs_by_range',
      what: 'eth_getLogs by range',
      advice: 'prefer an endpoint that serves ranges of 10 blocks',
      without: 'logs are queried block by block, which takes up to one more request per block',
    },
    async () => {
      const [last, least] = [
        Number(head.number),
        Math.max(0, Number(head.number) - RANGE_BLOCKS + 1),
      ]
      const logs = await call<unknown>('eth_getLogs', [
        { ...question, fromBlock: hex(least), toBlock: hex(last) },
      ])
      new Answer(network.code, 'eth_getLogs').list(logs, 'logs')
    },
  )
}

const unseen = (what: string): string =>
  `${what} is served; no block of the last ${BLOCKS_MAX} has a transaction for this check`

async function checkTransactions(
  { report, network }: ProbeContext,
  call: JsonRpc,
  paying: TimedBlock | null,
): Promise<void> {
  const hash = paying?.transactions[0]?.hash ?? `0x${'0'.repeat(64)}`
  await report.check(
    { code: 'transaction', what: 'eth_getTransactionByHash', advice: NEEDED },
    async (say) => {
      const result = await call<{ hash?: string } | null>('eth_getTransactionByHash', [hash])
      if (!paying) return say.note(unseen('eth_getTransactionByHash'))
      if (result?.hash !== hash)
        throw new Error(`eth_getTransactionByHash does not return ${hash} of the newest blocks`)
    },
  )
  const receipt = await report.check(
    { code: 'receipt', what: RECEIPTS, advice: NEEDED },
    async (say) => {
      const result = await call<RpcReceipt | null>(RECEIPTS, [hash])
      if (!paying) return say.note(unseen(RECEIPTS))
      const answer = new Answer(network.code, RECEIPTS)
      if (!result) return answer.refuse(`does not return ${hash} of the newest blocks`)
      answer.quantity(result.status, 'status')
      answer.quantity(result.gasUsed, 'gasUsed')
      answer.hash(result.blockHash, 'blockHash')
      return result
    },
  )
  if (!receipt) return
  await report.check(
    {
      code: 'effective_gas_price',
      what: 'effectiveGasPrice',
      advice: 'no action is required',
      without: 'fees are read from the transaction, which takes one more request',
    },
    async (say) => {
      if (positive(receipt.effectiveGasPrice) === null)
        throw new Error(`${RECEIPTS} returns no effectiveGasPrice`)
      say.note('receipts have an effectiveGasPrice')
    },
  )
}

/** Checks that a request returns a number. */
type QuantityCheck = (
  code: string,
  method: string,
  params: unknown[],
  more?: Partial<Check>,
) => Promise<unknown>

async function checkState(
  context: ProbeContext,
  call: JsonRpc,
  head: TimedBlock,
  tokens: string[],
): Promise<void> {
  const { report, network } = context
  const quantity: QuantityCheck = (code, method, params, more = {}) =>
    report.check({ code, what: method, advice: NEEDED, ...more }, async () => {
      new Answer(network.code, method).quantity(await call<unknown>(method, params), 'a number')
    })
  await quantity('nonce', 'eth_getTransactionCount', [ADDRESS, 'latest'])
  await quantity('balance', 'eth_getBalance', [ADDRESS, 'latest'])
  await report.check({ code: 'call', what: 'eth_call', advice: NEEDED }, async () => {
    const request =
      tokens[0] === undefined
        ? { to: ADDRESS }
        : { to: tokens[0], data: `${BALANCE_OF}${word(ADDRESS.slice(2))}` }
    const result = await call<unknown>('eth_call', [request, 'latest'])
    if (tokens[0] !== undefined && !/^0x[0-9a-f]{64}$/i.test(String(result))) {
      throw new Error(
        `eth_call returns no balance of the token ${tokens[0]}: check that the state of the newest block is available`,
      )
    }
  })
  await quantity('estimate_gas', 'eth_estimateGas', [{ from: ADDRESS, to: ADDRESS, value: '0x0' }])
  await checkFees(context, call, head, quantity)
  await checkScan(context, head)
}

/** Checks the requests from which fee rates are read. */
async function checkFees(
  { report, network, assets, endpoint, fetch }: ProbeContext,
  call: JsonRpc,
  head: TimedBlock,
  quantity: QuantityCheck,
): Promise<void> {
  const isMarket = network.legacy_gas_price !== true && typeof head.baseFeePerGas === 'string'
  if (isMarket) {
    await report.check(
      {
        code: 'fee_history',
        what: 'eth_feeHistory',
        advice: 'prefer an endpoint that serves it',
        without: 'tips are the node’s own suggestion, the same for each level',
        when: isUnknown,
      },
      async () => {
        const history = await call<{ baseFeePerGas?: unknown; reward?: unknown } | null>(
          'eth_feeHistory',
          [hex(10), 'latest', [25, 50, 75]],
        )
        if (!Array.isArray(history?.baseFeePerGas))
          throw new Error('eth_feeHistory returns no baseFeePerGas')
        if (!Array.isArray(history.reward)) throw new Error('eth_feeHistory returns no reward')
      },
    )
    const without = 'where blocks contain no tips, the tip is 1 wei'
    const advice = 'prefer an endpoint that serves it'
    await quantity('priority_fee', 'eth_maxPriorityFeePerGas', [], {
      advice,
      without,
      when: isUnknown,
    })
  }
  await quantity(
    'gas_price',
    'eth_gasPrice',
    [],
    isMarket
      ? {
          advice: 'prefer an endpoint that serves it',
          without: 'there is no fee rate if the fee history contains none',
          when: isUnknown,
        }
      : {},
  )
  await report.check(
    {
      code: 'fee_rates',
      what: 'fee rates',
      advice: 'use another endpoint: nothing can be sent without a price',
    },
    async (say) => {
      const { low, high } = await new EvmClient(network, assets, endpoint, fetch).feeRates()
      say.note(`at most ${low.maxFeePerGas} to ${high.maxFeePerGas} wei per gas`)
    },
  )
}

/** Reads the newest block as a scan does. */
async function checkScan(
  { report, network, assets, endpoint, fetch }: ProbeContext,
  head: TimedBlock,
): Promise<void> {
  await report.check(
    {
      code: 'scan',
      what: 'the newest block',
      advice: 'use another endpoint: deposits cannot be read from this one',
    },
    async (say) => {
      const block = await new EvmClient(network, assets, endpoint, fetch).block(Number(head.number))
      if (!block)
        throw new Error(
          `block ${Number(head.number)} disappeared: the nodes behind the address do not agree`,
        )
      say.note(
        `block ${block.height} can be read as in a scan, with ${block.transfers.length} payments`,
      )
    },
  )
}

async function checkRollUp({ report, network }: ProbeContext, call: JsonRpc): Promise<void> {
  const oracle = network.l1_fee_oracle
  if (oracle === undefined) return
  const ask = (data: string) => call<unknown>('eth_call', [{ to: oracle, data }, 'latest'])
  await report.check(
    {
      code: 'l1_fee',
      what: 'getL1Fee',
      advice: 'use another endpoint: without it, fees of transfers are unknown',
    },
    async (say) => {
      const bytes = 'ff'.repeat(128)
      const fee = new Answer(network.code, 'getL1Fee').quantity(
        await ask(`${GET_L1_FEE}${word(32n)}${word(128n)}${bytes}`),
        'a fee',
      )
      say.note(`publishing 128 bytes on the parent chain costs ${fee} wei`)
    },
  )
  await report.check(
    { code: 'operator_fee', what: 'getOperatorFee', advice: NEEDED },
    async (say) => {
      try {
        const fee = new Answer(network.code, 'getOperatorFee').quantity(
          await ask(`${GET_OPERATOR_FEE}${word(21_000n)}`),
          'a fee',
        )
        say.note(`the operator's fee for 21,000 gas is ${fee} wei`)
      } catch (error) {
        const { last } = report.questions
        if (last.status !== 200 || isNotServed(error, last)) throw error
        say.note('the chain has no operator fee')
      }
    },
  )
}

/** Returns a function that reads a past block with the data that a scan reads of it. */
function readerOf({ network, report }: ProbeContext, call: JsonRpc, tokens: string[]) {
  return async (height: number): Promise<BlockMark | null> => {
    try {
      const block = await call<BlockWithIds | null>('eth_getBlockByNumber', [hex(height), false])
      if (!block) return null
      if (tokens.length > 0)
        await call('eth_getLogs', [
          { blockHash: block.hash, address: tokens, topics: [TRANSFER_TOPIC] },
        ])
      const [first] = block.transactions
      if (first !== undefined && !(await call(RECEIPTS, [first]))) return null
      return {
        height,
        time: Number(
          new Answer(network.code, 'eth_getBlockByNumber').quantity(block.timestamp, 'timestamp'),
        ),
      }
    } catch (error) {
      if (error instanceof RpcRefused && report.questions.last.status !== 429) return null
      throw error
    }
  }
}

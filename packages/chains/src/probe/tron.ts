import { exchange, RpcRefused, RpcUnavailable } from '../rpc.ts'
import { addressHex } from '../tron/address.ts'
import { TronClient } from '../tron/rpc.ts'
import type { Block } from '../tron/api-types.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'

/** The address whose bytes are all zeros; its key is unknown. */
const ZERO_ADDRESS = 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'
const ZERO_HASH = '0'.repeat(64)
const BLOCKS_MAX = 10
const STAKING = 'gas tanks cannot stake TRX for energy'

type Post = <T>(path: string, body?: Record<string, unknown>) => Promise<T>

/** Tron: checks the requests that `TronClient` sends to `/wallet` and `/walletsolidity`. */
export const tron: FamilyProbe = {
  client: ({ network, assets, endpoint, fetch }) =>
    new TronClient(network, assets, endpoint, fetch),

  async run(context) {
    const { network, assets, endpoint, fetch, report } = context
    const client = new TronClient(network, assets, endpoint, fetch)
    const post = tronPost(context)
    const mark = await report.check(
      { code: 'head', what: 'wallet/getnowblock', advice: NEEDED },
      async (say) => {
        const result = markOf(await post<Block>('wallet/getnowblock'))
        if (!result)
          throw new Error('wallet/getnowblock returns no block: the node is still synchronising')
        say.note(`block ${result.height}`)
        return result
      },
    )
    if (!mark) return null
    const final =
      'use an endpoint that serves /walletsolidity: finality of deposits and transfers depends on it'
    await report.check(
      { code: 'final', what: 'walletsolidity/getnowblock', advice: final },
      async (say) => {
        const result = markOf(await post<Block>('walletsolidity/getnowblock'))
        if (!result) throw new Error('walletsolidity/getnowblock returns no block')
        say.note(
          `the solidified block is ${Math.max(0, mark.height - result.height)} blocks behind the newest`,
        )
      },
    )
    await report.check(
      {
        code: 'scan',
        what: 'wallet/getblockbynum',
        advice: 'use another endpoint: deposits cannot be read from this one',
      },
      async (say) => {
        const block = await client.block(mark.height)
        if (!block)
          throw new Error(
            `wallet/getblockbynum does not return block ${mark.height}: the nodes behind the address do not agree`,
          )
        say.note(
          `block ${mark.height} can be read as in a scan, with ${block.transfers.length} payments`,
        )
      },
    )
    await checkTransactions(context, post, mark)
    await checkAccounts(context, post, client, mark)
    await measureHistory(report, 'wallet/getblockbynum', mark, 0, async (height) => {
      const result = markOf(await post<Block>('wallet/getblockbynum', { num: height }))
      if (result) await post('wallet/gettransactioninfobyblocknum', { num: height })
      return result
    })
    await checkBroadcast(
      report,
      'wallet/broadcasthex',
      NEEDED,
      async () =>
        (await post<{ result?: unknown }>('wallet/broadcasthex', { transaction: '00' })).result ===
        true,
    )
    return mark
  },
}

async function checkTransactions(
  { report }: ProbeContext,
  post: Post,
  head: BlockMark,
): Promise<void> {
  const result = await report.check(
    {
      code: 'transaction_infos',
      what: 'wallet/gettransactioninfobyblocknum',
      advice: 'use an endpoint that serves it: deposits of tokens are read from it',
    },
    async (say) => {
      for (let back = 0; back < BLOCKS_MAX && back <= head.height; back++) {
        const infos = await post<{ id?: string }[]>('wallet/gettransactioninfobyblocknum', {
          num: head.height - back,
        })
        if (Array.isArray(infos) && typeof infos[0]?.id === 'string') {
          say.note(
            `wallet/gettransactioninfobyblocknum returns the transactions of block ${head.height - back}`,
          )
          return infos[0].id
        }
      }
      const what = 'wallet/gettransactioninfobyblocknum'
      say.note(
        `${what} is served; no block of the last ${BLOCKS_MAX} has a transaction for this check`,
      )
      return ZERO_HASH
    },
  )
  const id = result ?? ZERO_HASH
  await report.check(
    { code: 'transaction', what: 'wallet/gettransactioninfobyid', advice: NEEDED },
    async () => {
      const info = await post<{ id?: string }>('wallet/gettransactioninfobyid', { value: id })
      if (id !== ZERO_HASH && info.id !== id)
        throw new Error(`wallet/gettransactioninfobyid does not return ${id} of the newest blocks`)
    },
  )
  for (const [code, path] of [
    ['pending', 'wallet/gettransactionfrompending'],
    ['final_transaction', 'walletsolidity/gettransactioninfobyid'],
    ['final_transaction_body', 'walletsolidity/gettransactionbyid'],
  ] as const) {
    await report.check({ code, what: path, advice: NEEDED }, () =>
      post<unknown>(path, { value: id }),
    )
  }
}

async function checkAccounts(
  { report, assets }: ProbeContext,
  post: Post,
  client: TronClient,
  head: BlockMark,
): Promise<void> {
  const address = addressHex(ZERO_ADDRESS)
  const served = (code: string, path: string, body: Record<string, unknown>, without?: string) =>
    report.check(
      {
        code,
        what: path,
        ...(without === undefined
          ? { advice: NEEDED }
          : { advice: 'use an endpoint that serves it, if you stake', without }),
      },
      () => post<unknown>(path, body),
    )
  await served('account', 'wallet/getaccount', { address })
  await served('final_account', 'walletsolidity/getaccount', { address })
  await served('resources', 'wallet/getaccountresource', { address })
  await served('contract', 'wallet/getcontract', { value: address })
  await report.check(
    { code: 'parameters', what: 'wallet/getchainparameters', advice: NEEDED },
    async (say) =>
      say.note(
        `energy costs ${(await client.parameters()).energySun} sun, bandwidth ${(await client.parameters()).bandwidthSun}`,
      ),
  )
  const token = assets.find(({ type }) => type === 'token')
  if (token) {
    await report.check(
      {
        code: 'constant_call',
        what: 'wallet/triggerconstantcontract',
        advice: 'use a node with vm.supportConstant = true',
      },
      async (say) => {
        await client.balance(ZERO_ADDRESS, token)
        say.note(`wallet/triggerconstantcontract returns a balance of ${token.asset_name}`)
      },
    )
  }
  await served(
    'stake_lendable',
    'wallet/getcandelegatedmaxsize',
    { owner_address: address, type: 1 },
    STAKING,
  )
  await served(
    'stake_lent',
    'wallet/getdelegatedresourcev2',
    { fromAddress: address, toAddress: address },
    STAKING,
  )
  await served(
    'unstakes_left',
    'wallet/getavailableunfreezecount',
    { owner_address: address },
    STAKING,
  )
  await served(
    'unstaked',
    'wallet/getcanwithdrawunfreezeamount',
    { owner_address: address, timestamp: head.time * 1000 },
    STAKING,
  )
}

/** Returns the function that sends one request; it throws an error that the node returns. */
function tronPost({ endpoint, fetch }: ProbeContext): Post {
  return async <T>(path: string, body: Record<string, unknown> = {}): Promise<T> => {
    const { status, text } = await exchange(endpoint, fetch, {
      url: `${endpoint.url.replace(/\/+$/, '')}/${path}`,
      what: path,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const odd = () =>
      new RpcUnavailable(`${path}: the response is not in the format of a Tron node`)
    if (status < 200 || status >= 300) throw odd()
    let answer: { Error?: unknown } | null
    try {
      answer = JSON.parse(text) as { Error?: unknown } | null
    } catch {
      throw odd()
    }
    if (typeof answer !== 'object' || answer === null) throw odd()
    if (answer.Error !== undefined) throw new RpcRefused(0, String(answer.Error).slice(0, 300))
    return answer as T
  }
}

/** Returns a block's height and time; null if the response contains no block. */
const markOf = ({ blockID: id, block_header: header }: Block): BlockMark | null =>
  id === undefined || !header
    ? null
    : {
        height: header.raw_data.number ?? 0,
        time: Math.floor((header.raw_data.timestamp ?? 0) / 1000),
      }

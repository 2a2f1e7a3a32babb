import { CardanoClient } from '../cardano/rpc.ts'
import { exchange, RpcRefused, RpcUnavailable } from '../rpc.ts'
import { checkBroadcast } from './broadcast.ts'
import { NEEDED, type FamilyProbe, type ProbeContext } from './context.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'

const BLOCKS_MAX = 10
const NOT_FOUND = 404
const CBOR =
  'enable tx_cbor in cardano-db-sync, or use another endpoint: amounts are read from the bytes of transactions'

interface Block {
  hash?: string
  height?: number | null
  time?: number
  tx_count?: number
}
type Ask = <T>(path: string, body?: Uint8Array) => Promise<T | null>

/** Cardano: checks the requests that `CardanoClient` sends to Blockfrost's API. */
export const cardano: FamilyProbe = {
  client: ({ network, endpoint, fetch }) => new CardanoClient(network, endpoint, fetch),

  async run(context) {
    const { network, endpoint, fetch, report } = context
    const client = new CardanoClient(network, endpoint, fetch)
    const ask = askerOf(context)
    const markOf = (block: Block | null): BlockMark | null => {
      if (!block) return null
      if (!Number.isSafeInteger(block.height) || !Number.isSafeInteger(block.time))
        throw new Error('a block has no height or time')
      return { height: block.height as number, time: block.time as number }
    }
    const mark = await report.check(
      { code: 'head', what: '/blocks/latest', advice: NEEDED },
      async (say) => {
        const result = markOf(await ask<Block>('/blocks/latest'))
        if (!result) throw new Error('/blocks/latest is not served')
        say.note(`block ${result.height}`)
        return result
      },
    )
    if (!mark) return null
    await report.check(
      {
        code: 'scan',
        what: '/blocks',
        advice: 'use another endpoint: deposits cannot be read from this one',
      },
      async (say) => {
        const block = await client.block(mark.height)
        if (!block)
          throw new Error(
            `/blocks does not return block ${mark.height}: the servers behind the address do not agree`,
          )
        say.note(
          `block ${mark.height} can be read as in a scan, with ${block.transfers.length} outputs`,
        )
      },
    )
    await checkTransactions(context, ask, client, mark)
    await report.check(
      { code: 'parameters', what: '/epochs/latest/parameters', advice: NEEDED },
      async (say) => say.note(`a byte costs ${(await client.parameters()).feePerByte} lovelace`),
    )
    await measureHistory(report, '/blocks', mark, 0, async (height) => {
      const block = await ask<Block>(`/blocks/${height}`)
      if (
        block &&
        (block.tx_count ?? 0) > 0 &&
        (await ask(`/blocks/${String(block.hash)}/txs/cbor?count=1&page=1`)) === null
      )
        return null
      return markOf(block)
    })
    await checkBroadcast(
      report,
      '/tx/submit',
      'put cardano-submit-api behind /tx/submit, or use another endpoint',
      async () => {
        if ((await ask('/tx/submit', Uint8Array.of(0))) === null)
          throw new RpcRefused(NOT_FOUND, 'path not found')
        return true
      },
    )
    return mark
  },
}

/**
 * Returns a function that queries a path; the result is null if the endpoint does not have the
 * object.
 */
function askerOf({ endpoint, fetch }: ProbeContext): Ask {
  return async <T>(path: string, body?: Uint8Array): Promise<T | null> => {
    const what = path.split('?')[0] as string
    const { status, text } = await exchange(endpoint, fetch, {
      url: `${endpoint.url.replace(/\/+$/, '')}${path}`,
      what,
      method: body ? 'POST' : 'GET',
      headers: {
        accept: 'application/json',
        ...(body ? { 'content-type': 'application/cbor' } : {}),
      },
      ...(body ? { body: Buffer.from(body) } : {}),
    })
    let answer: unknown
    try {
      answer = JSON.parse(text)
    } catch {
      throw new RpcUnavailable(`${what}: the response is not JSON`)
    }
    if (status === 200 || status === 202) return answer as T
    const { status_code: code, message } = (answer ?? {}) as {
      status_code?: unknown
      message?: unknown
    }
    if (code !== status)
      throw new RpcUnavailable(
        `${what}: the response is not in the format of Blockfrost (HTTP ${status})`,
      )
    if (status === NOT_FOUND) return null
    throw new RpcRefused(status, String(message ?? `HTTP ${status}`).slice(0, 300))
  }
}

async function checkTransactions(
  { report }: ProbeContext,
  ask: Ask,
  client: CardanoClient,
  head: BlockMark,
): Promise<void> {
  const txid = await report.check(
    { code: 'transaction_bytes', what: '/blocks/…/txs/cbor', advice: CBOR },
    async (say) => {
      for (let back = 0; back < BLOCKS_MAX && back <= head.height; back++) {
        const block = await ask<Block>(`/blocks/${head.height - back}`)
        if (!block || !block.tx_count) continue
        const result = await ask<{ tx_hash: string; cbor: unknown }[]>(
          `/blocks/${String(block.hash)}/txs/cbor?count=1&page=1`,
        )
        if (!Array.isArray(result) || !result[0])
          throw new Error('/blocks/…/txs/cbor is not served')
        if (typeof result[0].cbor !== 'string' || result[0].cbor === '')
          throw new Error('/blocks/…/txs/cbor returns no cbor')
        say.note(`/blocks/…/txs/cbor returns the transactions of block ${head.height - back}`)
        return result[0].tx_hash
      }
      say.note(`no block of the last ${BLOCKS_MAX} has a transaction for this check`)
      return null
    },
  )
  if (txid === undefined || txid === null) return
  const existing = (code: string, path: string, advice = NEEDED) =>
    report.check({ code, what: path.replace('*', '…'), advice }, async () => {
      if ((await ask(path.replace('*', txid))) === null)
        throw new Error(`${path.replace('*', '…')} does not return ${txid} of a block`)
    })
  await existing('transaction', '/txs/*')
  await existing('transaction_outputs', '/txs/*/utxos')
  await report.check({ code: 'transaction_body', what: '/txs/…/cbor', advice: CBOR }, async () => {
    await client.transactionBody(txid)
  })
  await report.check(
    {
      code: 'mempool',
      what: '/mempool',
      advice: 'no action is required',
      without: 'a transfer that was sent is not seen before its first block',
      when: (error) => error instanceof RpcRefused,
    },
    async (say) => {
      await ask(`/mempool/${txid}`)
      say.note('/mempool is served')
    },
  )
}

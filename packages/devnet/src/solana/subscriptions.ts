import { RpcError } from '../errors.ts'
import type { SocketSession } from '../http-server.ts'
import type { Block, Included, SolanaChain } from './chain.ts'
import { accountOf, inContext, INVALID_PARAMS, keyOf, METHOD_NOT_FOUND, text } from './rpc.ts'

/**
 * Message of a subscription about a block; `isLast` ends the subscription, as for a signature that
 * was found.
 */
interface News {
  result: unknown
  isLast?: boolean
}
type Subscription = { notification: string; news: (block: Block) => News[] }
type Subscribe = (chain: SolanaChain, params: unknown[]) => Subscription

const KINDS: Record<string, Subscribe> = {
  signature: (chain, [signature]) => ({
    notification: 'signatureNotification',
    news: ({ slot, transactions }) =>
      transactions
        .filter(({ signatures }) => signatures[0] === signature)
        .map((included) => ({
          result: { context: { slot }, value: { err: included.meta.err } },
          isLast: true,
        })),
  }),
  slot: () => ({
    notification: 'slotNotification',
    news: ({ slot, parentSlot }) => [{ result: { parent: parentSlot, root: slot, slot } }],
  }),
  root: () => ({ notification: 'rootNotification', news: ({ slot }) => [{ result: slot }] }),
  account: (chain, [key]) => {
    const account = keyOf(key)
    return {
      notification: 'accountNotification',
      news: ({ transactions }) =>
        transactions.some(({ keys }) => keys.includes(account))
          ? [{ result: inContext(chain, accountOf(chain, account, {})) }]
          : [],
    }
  },
  logs: (chain, [filter]) => {
    const mentions = (filter as { mentions?: unknown[] } | null)?.mentions
    const isKnown =
      filter === 'all' ||
      filter === 'allWithVotes' ||
      (Array.isArray(mentions) && mentions.length === 1)
    if (!isKnown) throw new RpcError(INVALID_PARAMS, 'Invalid Request: Only 1 address supported')
    const isMeant = ({ keys }: Included) =>
      mentions === undefined || keys.includes(keyOf(mentions[0]))
    return {
      notification: 'logsNotification',
      news: ({ slot, transactions }) =>
        transactions.filter(isMeant).map(({ signatures, meta }) => ({
          result: {
            context: { slot },
            value: { signature: signatures[0], err: meta.err, logs: meta.logs },
          },
        })),
    }
  },
}

/**
 * WebSocket of one client: subscriptions to signatures, slots, roots, accounts and logs. Every
 * block is final immediately.
 */
export function solanaSocket(chain: SolanaChain, push: (message: string) => void): SocketSession {
  const subscriptions = new Map<number, Subscription>()
  let last = 0
  const notify = (id: number, block: Block): void => {
    const { notification, news } = subscriptions.get(id) as Subscription
    for (const { result, isLast } of news(block)) {
      push(text({ jsonrpc: '2.0', method: notification, params: { result, subscription: id } }))
      if (isLast) subscriptions.delete(id)
    }
  }
  const run = (method: string, params: unknown[]): unknown => {
    const [, kind = '', what] = /^([a-z]+)(Subscribe|Unsubscribe)$/.exec(method) ?? []
    const subscribe = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined
    if (!subscribe) throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
    if (what === 'Unsubscribe') {
      if (!subscriptions.delete(Number(params[0])))
        throw new RpcError(INVALID_PARAMS, 'Invalid subscription id.')
      return true
    }
    const subscription = subscribe(chain, params)
    last += 1
    subscriptions.set(last, subscription)
    return last
  }
  const unwatch = chain.watch((block) => {
    // A signature's subscription may remove itself during the iteration, which a Map allows.
    for (const id of subscriptions.keys()) notify(id, block)
  })
  return {
    receive(message) {
      let id: unknown = null
      try {
        const request = JSON.parse(message) as { id?: unknown; method?: unknown; params?: unknown }
        // A request without an id gets no response; clients use it as a ping.
        if (request.id === undefined) return { silence: true }
        id = request.id
        const params = Array.isArray(request.params) ? (request.params as unknown[]) : []
        const result = run(String(request.method), params)
        // A signature that is already in a block is reported after the response.
        const place =
          request.method === 'signatureSubscribe' ? chain.places.get(String(params[0])) : undefined
        const block = place && chain.slots.get(place.slot)
        if (block) queueMicrotask(() => notify(Number(result), block))
        return { text: text({ jsonrpc: '2.0', id, result }) }
      } catch (error) {
        if (!(error instanceof RpcError) && !(error instanceof SyntaxError)) throw error
        return {
          text: text({
            jsonrpc: '2.0',
            id,
            error: {
              code: error instanceof RpcError ? error.code : -32700,
              message: error.message,
            },
          }),
        }
      }
    },
    close: unwatch,
  }
}

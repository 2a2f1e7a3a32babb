import { z } from 'zod'
import { leftoverRefusal } from '../policy/leftover.ts'
import { accountOf, isNonceGap, isUnheardOf } from '../policy/nonce.ts'
import type { Verdict } from '../policy/order.ts'
import type { Config } from '../config.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import { THIRD_NODE_MS, type Peers } from '../transport/peers.ts'
import type { Reservations } from './reservations.ts'

const askSchema = z.strictObject({ account: z.string().max(256) })
const tellSchema = z.strictObject({
  nonce: z
    .string()
    .regex(/^[0-9]{1,20}$/)
    .nullable(),
})

const addressSchema = z.strictObject({ network: z.string().max(32), address: z.string().max(128) })
const placesSchema = z
  .array(z.tuple([z.string().max(128), z.string().regex(/^[0-9]{1,78}$/)]))
  .max(10_000)
const fuelledSchema = z.strictObject({ fuel: placesSchema, fees: placesSchema })

/**
 * Queries the peers for nonces and fuel of transactions that they signed without this node. A node
 * takes part in two thirds of the signatures.
 */
export class CatchUp {
  readonly #parts: { config: Config; store: Store; peers: Peers; log: Log }

  constructor(parts: { config: Config; store: Store; peers: Peers; log: Log }) {
    this.#parts = parts
    parts.peers.handle('/peer/fuelled', async (_node, body) => {
      const { network, address } = addressSchema.parse(body)
      const existing = parts.store.state.fuelled.get(network, address)
      const places = (map: Map<string, bigint> | undefined) =>
        [...(map ?? [])].slice(-10_000).map(([place, amount]) => [place, amount.toString()])
      return { fuel: places(existing?.fuel), fees: places(existing?.fees) }
    })
    parts.peers.handle('/peer/nonce', async (_node, body) => ({
      nonce: parts.store.state.nonces.get(askSchema.parse(body).account)?.toString() ?? null,
    }))
  }

  /**
   * Reads from the peers the data that this node needs before it checks a verdict against its
   * record.
   * @param reserved what is being signed here
   */
  async prepare(verdict: Verdict, reserved: Pick<Reservations, 'nonceOf'>): Promise<void> {
    const { state } = this.#parts.store
    const account = accountOf(verdict)
    const ahead = account === null ? null : reserved.nonceOf(account)
    const isMissing = isNonceGap(state, verdict, ahead) || isUnheardOf(state, verdict)
    await Promise.all([
      isMissing ? this.learn(verdict) : undefined,
      leftoverRefusal(state, verdict) === null ? undefined : this.#learnLeftover(verdict),
    ])
  }

  /**
   * Not recorded, because it is queried again each time, and a peer's response can only make this
   * node as strict or lenient as the peer.
   */
  async #learnLeftover({ network, leftover }: Verdict): Promise<void> {
    const { config, store, peers, log } = this.#parts
    const { address } = leftover!
    await Promise.all(
      peers.nodes.map(async (node) => {
        try {
          const reported = fuelledSchema.parse(
            await peers.call(
              node,
              '/peer/fuelled',
              { network: network.code, address },
              {
                timeout: Math.min(THIRD_NODE_MS, config.timeouts_ms.round),
              },
            ),
          )
          const mapOf = (places: [string, string][]) =>
            new Map(places.map(([place, amount]) => [place, BigInt(amount)]))
          store.state.fuelled.merge(network.code, address, {
            fuel: mapOf(reported.fuel),
            fees: mapOf(reported.fees),
          })
        } catch (error) {
          log('warn', 'the earlier fuel payments to an address could not be queried from a peer', {
            peer: node,
            reason: reason(error),
          })
        }
      }),
    )
  }

  async learn(verdict: Verdict): Promise<void> {
    const { config, store, peers, log } = this.#parts
    const account = accountOf(verdict)!
    const wasUnheardOf = isUnheardOf(store.state, verdict)
    await Promise.all(
      peers.nodes.map(async (node) => {
        try {
          const { nonce } = tellSchema.parse(
            await peers.call(
              node,
              '/peer/nonce',
              { account },
              {
                timeout: Math.min(THIRD_NODE_MS, config.timeouts_ms.round),
              },
            ),
          )
          const isHigher =
            nonce !== null && BigInt(nonce) > (store.state.nonces.get(account) ?? -1n)
          if (isHigher && (wasUnheardOf || isNonceGap(store.state, verdict))) {
            store.append('nonce', { account, nonce, from: node })
          }
        } catch (error) {
          log('warn', 'the newest nonce of an account could not be queried from a peer', {
            peer: node,
            reason: reason(error),
          })
        }
      }),
    )
  }
}

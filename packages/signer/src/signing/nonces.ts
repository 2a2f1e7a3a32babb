import { z } from 'zod'
import { accountOf, isNonceGap } from '../policy/nonce.ts'
import type { Verdict } from '../policy/order.ts'
import type { Config } from '../config.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'

const askSchema = z.strictObject({ account: z.string().max(256) })
const tellSchema = z.strictObject({ nonce: z.string().regex(/^[0-9]{1,20}$/).nullable() })

/** A node takes part in two thirds of the signatures; the nonces of the others it asks its peers for. */
export class Nonces {
  readonly #parts: { config: Config; store: Store; peers: Peers; log: Log }

  constructor(parts: { config: Config; store: Store; peers: Peers; log: Log }) {
    this.#parts = parts
    parts.peers.handle('/peer/nonce', async (_node, body) => ({ nonce: parts.store.state.nonces.get(askSchema.parse(body).account)?.toString() ?? null }))
  }

  async learn(verdict: Verdict): Promise<void> {
    const { config, store, peers, log } = this.#parts
    const account = accountOf(verdict)!
    await Promise.all(peers.nodes.map(async (node) => {
      try {
        const { nonce } = tellSchema.parse(await peers.call(node, '/peer/nonce', { account }, { timeout: Math.min(2000, config.timeouts_ms.round) }))
        if (nonce !== null && BigInt(nonce) > (store.state.nonces.get(account) ?? -1n) && isNonceGap(store.state, verdict)) store.append('nonce', { account, nonce, from: node })
      } catch (error) {
        log('warn', 'could not ask for a nonce', { peer: node, reason: reason(error) })
      }
    }))
  }
}

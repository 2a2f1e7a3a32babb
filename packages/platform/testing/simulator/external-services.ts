import { ProviderError, type Provider } from '../../src/custody/aml/providers/provider.ts'
import type { RiskLevel } from '../../src/custody/aml/levels.ts'
import type { Answer } from '../../src/events/webhooks/send.ts'
import type { Actor } from './schedule.ts'
import type { FaultContext } from './fault-context.ts'

/** Refused deliveries per thousand during fault injection. */
const REFUSED = 200

export interface Delivery {
  webhook: string
  event: string
  object: string
  version: number
  isTaken: boolean
}

/**
 * External services besides chains and nodes: the provider that screens addresses, and the
 * receivers of webhooks.
 */
export class ExternalServices {
  readonly #context: FaultContext
  /** Risk level of each address at the provider. */
  readonly risks = new Map<string, RiskLevel>()
  /** All received deliveries, accepted or refused. */
  readonly received: Delivery[] = []
  isStormy = false

  constructor(context: FaultContext) {
    this.#context = context
  }

  provider(actor: Actor): Provider {
    const { schedule, random } = this.#context
    return {
      verifyToken: async () => true,
      screen: (_token, { address }) =>
        schedule.pauseAt(actor, `screen ${address}`, async () => {
          if (this.isStormy && random.rarely(REFUSED)) {
            this.#context.noted('screening could not be asked')
            throw new ProviderError('unreachable', 'is away')
          }
          return this.risks.get(address) ?? null
        }),
    }
  }

  /** Implements `Sender.post`. */
  post(
    actor: Actor,
    webhook: string,
    headers: Record<string, string>,
    body: string,
  ): Promise<Answer | null> {
    const { schedule, random } = this.#context
    const message = JSON.parse(body) as { id?: string; object?: string; version?: number }
    return schedule.pauseAt(
      actor,
      `post ${webhook} ${String(message.object)} ${String(message.version)}`,
      async () => {
        const answer = (status: number | null, error: string | null): Answer => ({
          status,
          error,
          text: '',
          retryAfterMs: null,
          durationMs: 1,
        })
        const isTaken = !(this.isStormy && random.rarely(REFUSED))
        this.received.push({
          webhook,
          event: String(headers['webhook-id']),
          object: String(message.object),
          version: Number(message.version),
          isTaken,
        })
        if (!isTaken) {
          this.#context.noted('a receiver refused an event')
          return answer(500, 'status 500')
        }
        if (this.isStormy && random.rarely(REFUSED / 2)) {
          this.#context.noted('an answer of a receiver was lost')
          return answer(null, 'no answer')
        }
        return answer(200, null)
      },
    )
  }
}

import { createHash } from 'node:crypto'
import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import { callerKey } from '../../../../signer/testing/signer-cluster.ts'
import type { SeededRandom } from '../seeded-random.ts'

export const SINKS = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
] as const
const SINK_BTC = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
export const DECIMALS: Record<string, number> = { ETH: 18, USDT_ETH: 6, BTC: 8 }

export interface Person {
  apiKey: string
  subAccount: number
}

/**
 * A payment that a caller actually requested. Nothing else authorizes a request of the platform.
 */
export interface PlannedRequest {
  person: Person
  asset: string
  units: bigint
  to: string
  /** Name of the authorization; requests with the same name are one authorization. */
  name: string
  id: string
  request: SignedRequest
  receipts: unknown[]
  /** The caller's orders to cancel the payment. */
  cancels: SignedRequest[]
  /** The caller's orders to speed the payment up. */
  speedUps: SignedRequest[]
}

const text = (units: bigint, decimals: number): string =>
  `${units / 10n ** BigInt(decimals)}.${String(units % 10n ** BigInt(decimals)).padStart(decimals, '0')}`

/** Callers, and all requests that they have signed. */
export class People {
  readonly list: readonly Person[]
  readonly wishes: PlannedRequest[] = []
  readonly #random: SeededRandom
  readonly #now: () => number
  #count = 0
  readonly #drawUnits: () => bigint

  /** @param drawUnits returns the base amount of a payment, in the smallest units of its asset */
  constructor(
    seed: number,
    random: SeededRandom,
    now: () => number,
    drawUnits: () => bigint = () => 100_000n,
  ) {
    this.#drawUnits = drawUnits
    this.#random = random
    this.#now = now
    this.list = [1, 1, 2].map((subAccount, at) => ({
      subAccount,
      apiKey: createHash('sha256')
        .update(`${seed}/${at}`)
        .digest('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5'),
    }))
  }

  #sign(person: Person, uri: string, body: string): Promise<SignedRequest> {
    const nonce = `nonce-${++this.#count}`
    return signRequest({
      apiKey: person.apiKey,
      privateKey: callerKey,
      method: 'POST',
      uri,
      body,
      now: Math.floor(this.#now() / 1000),
      nonce,
    })
  }

  /** Adds a request, or repeats an earlier one with the same `sequence_id` for the same payment. */
  async plan(): Promise<void> {
    const random = this.#random
    const old = this.wishes.length > 0 && random.below(4) === 0 ? random.of(this.wishes) : null
    const person = old?.person ?? random.of(this.list)
    const asset = old?.asset ?? random.of(['ETH', 'ETH', 'USDT_ETH', 'BTC'])
    const units = old?.units ?? this.#drawUnits() + BigInt(this.wishes.length)
    const to = old?.to ?? (asset === 'BTC' ? SINK_BTC : random.of(SINKS))
    const sequence = old
      ? /"sequence_id":"([^"]+)"/.exec(old.request.body)?.[1]
      : random.below(2) === 0
        ? `sequence-${this.wishes.length}`
        : undefined
    const body = JSON.stringify({
      asset,
      amount: text(units, DECIMALS[asset] as number),
      destination_address: to,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
      ...(sequence ? { sequence_id: sequence } : {}),
    })
    const request = await this.#sign(person, '/dac/v1/transaction', body)
    const nonce = `nonce-${this.#count}`
    this.wishes.push({
      person,
      asset,
      units,
      to,
      request,
      id: transactionId(person.apiKey, nonce),
      receipts: [],
      cancels: [],
      speedUps: [],
      name: sequence ? `${person.subAccount} ${sequence}` : `${person.apiKey} ${nonce}`,
    })
  }

  async cancel(planRequest: PlannedRequest): Promise<void> {
    planRequest.cancels.push(
      await this.#sign(planRequest.person, `/dac/v1/transaction/${planRequest.id}/cancel`, '{}'),
    )
  }

  async speedUp(planRequest: PlannedRequest): Promise<void> {
    planRequest.speedUps.push(
      await this.#sign(planRequest.person, `/dac/v1/transaction/${planRequest.id}/speed-up`, '{}'),
    )
  }
}

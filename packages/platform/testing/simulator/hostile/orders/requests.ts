import { createHash } from 'node:crypto'
import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import { callerKey } from '../../../../../signer/testing/signer-cluster.ts'
import { CLOCK_MS } from './ledgers.ts'

/** A request that a caller has really signed. */
export interface CallerRequest {
  kind: 'pay' | 'rule' | 'cancel' | 'speed-up' | 'end'
  subAccount: number
  request: SignedRequest
  /** Public ID of the payment or rule. */
  id: string
  /** Of a payment or a rule: ticker. */
  asset: string
  /** Of a payment or a rule. */
  to: string
  /** Of a payment: its amount. Of a rule: its daily cap. In the smallest unit. */
  units: bigint
  /** Of a cancellation, a speed-up or a deletion: the ID that it is about. */
  about: string
}

interface Payee {
  asset: string
  decimals: number
  to: string
  units: bigint
  tag?: string | null
}

const text = (units: bigint, decimals: number): string =>
  `${units / 10n ** BigInt(decimals)}.${String(units % 10n ** BigInt(decimals)).padStart(decimals, '0')}`

/** The callers of two sub-accounts, and everything that they have signed. Nothing else is authorised. */
export class Callers {
  readonly signed: CallerRequest[] = []
  readonly apiKeys: ReadonlyMap<number, string>
  #count = 0

  constructor(seed: number) {
    this.apiKeys = new Map(
      [1, 2].map((sub) => [
        sub,
        createHash('sha256')
          .update(`orders ${seed}/${sub}`)
          .digest('hex')
          .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5'),
      ]),
    )
  }

  async #sign(
    of: Pick<CallerRequest, 'kind' | 'subAccount'> & Partial<CallerRequest>,
    [method, uri, body]: readonly ['POST' | 'DELETE', string, object],
  ): Promise<CallerRequest> {
    const apiKey = this.apiKeys.get(of.subAccount) as string
    const nonce = `nonce-${++this.#count}`
    const request = await signRequest({
      apiKey,
      privateKey: callerKey,
      method,
      uri,
      body: JSON.stringify(body),
      now: Math.floor(CLOCK_MS / 1000),
      nonce,
    })
    const signed = {
      asset: '',
      to: '',
      units: 0n,
      about: '',
      id: transactionId(apiKey, nonce),
      ...of,
      request,
    }
    this.signed.push(signed)
    return signed
  }

  pay(subAccount: number, { asset, decimals, to, units, tag }: Payee): Promise<CallerRequest> {
    const body = {
      asset,
      amount: text(units, decimals),
      destination_address: to,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
      ...(tag ? { address_tag: tag } : {}),
    }
    return this.#sign({ kind: 'pay', subAccount, asset, to, units }, [
      'POST',
      '/dac/v1/transaction',
      body,
    ])
  }

  rule(subAccount: number, { asset, decimals, to, units }: Payee): Promise<CallerRequest> {
    const body = {
      asset,
      min_amount: text(units / 10n, decimals),
      daily_cap: text(units, decimals),
      destination_address: to,
      expires_at: new Date(CLOCK_MS + 86_400_000).toISOString(),
    }
    return this.#sign({ kind: 'rule', subAccount, asset, to, units }, [
      'POST',
      '/dac/v1/auto-forwarding',
      body,
    ])
  }

  amend(kind: 'cancel' | 'speed-up', { subAccount, id }: CallerRequest): Promise<CallerRequest> {
    return this.#sign({ kind, subAccount, about: id }, [
      'POST',
      `/dac/v1/transaction/${id}/${kind}`,
      {},
    ])
  }

  end({ subAccount, id }: CallerRequest): Promise<CallerRequest> {
    return this.#sign({ kind: 'end', subAccount, about: id }, [
      'DELETE',
      `/dac/v1/auto-forwarding/${id}`,
      {},
    ])
  }

  of(kind: CallerRequest['kind']): CallerRequest[] {
    return this.signed.filter((each) => each.kind === kind)
  }
}

import { address as bech32 } from 'bitcoinjs-lib'
import { addressAt, type Network, type UnsignedTransaction } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  SINK_BTC_SCRIPT,
  usdt,
  type EthOptions,
  type Workspace,
} from '../../../../signer/testing/signer-cluster.ts'
import type { OrderPolicy } from '../../../src/core/signing/approvals.ts'
import type { WholeKeys } from '../../../../signer/testing/whole-keys.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { People, PlannedRequest } from './requests.ts'
import { SINKS } from './requests.ts'

/** Share of forged fields, per thousand. */
const FORGED = 120
const GWEI = 1_000_000_000n
const CHANGE_INDEX = 0x7fffffff

export interface Item {
  purpose: Record<string, unknown>
  unsigned: UnsignedTransaction
  /** What accompanies the order for the policy of the workspace. */
  policy?: OrderPolicy | undefined
}

/**
 * Builds the platform's requests to the nodes, which are correct in most fields and forged in some.
 */
export class Forger {
  readonly #random: SeededRandom
  readonly #keys: WholeKeys
  readonly #people: People
  readonly #forged: number
  /** Next nonce of each account, as tracked by the platform. */
  readonly nonces = new Map<string, number>()
  /** Nonce with which a payment was signed, by the payment's name. */
  readonly placed = new Map<string, number>()
  /** Amount of every coin that was ever used in a request. */
  readonly coins = new Map<string, bigint>()
  readonly #funding: { path: number[]; coin: ReturnType<typeof funding> }[] = []

  /** @param forged share of forged fields, per thousand */
  constructor(random: SeededRandom, keys: WholeKeys, people: People, forged = FORGED) {
    this.#forged = forged
    this.#random = random
    this.#keys = keys
    this.#people = people
  }

  #forge<T>(honest: T, forged: () => T): T {
    return this.#random.rarely(this.#forged) ? forged() : honest
  }

  address(network: Network, path: number[]): string {
    return addressAt(network, this.#keys.keys.secp256k1, path)
  }

  #request(planned: PlannedRequest): SignedRequest {
    const { request } = planned
    return this.#forge(request, () =>
      this.#random.of([
        { ...request, body: request.body.replace(/"amount":"?[0-9.]+"?/, '"amount":"9.9"') },
        {
          ...request,
          body: request.body.replace(
            /"destination_address":"\w+"/,
            `"destination_address":"${SINKS[1]}"`,
          ),
        },
        { ...request, token: this.#random.of(this.#people.wishes).request.token },
        { ...request, uri: `${request.uri}/other/cancel` },
      ]),
    )
  }

  /** Returns the purpose of a payment, with its own receipts, those of another payment, or none. */
  pay(planned: PlannedRequest): Record<string, unknown> {
    const receipts = this.#forge(
      planned.receipts,
      () => this.#random.of(this.#people.wishes).receipts,
    ).slice(0, 3)
    const faster = this.#forge(
      planned.speedUps,
      () => this.#random.of(this.#people.wishes).cancels,
    ).at(-1)
    return {
      kind: 'pay',
      request: this.#request(planned),
      ...(receipts.length > 0 ? { receipts } : {}),
      ...(faster ? { speed_up: { request: faster } } : {}),
    }
  }

  cancel(planned: PlannedRequest): Record<string, unknown> {
    const cancels = this.#forge(planned.cancels, () => this.#random.of(this.#people.wishes).cancels)
    return { kind: 'cancel', of: this.pay(planned), request: cancels.at(-1) ?? planned.request }
  }

  #nonce(path: number[], plus = 0, of = ''): number {
    const placed = this.placed.get(of)
    const next =
      placed !== undefined && plus === 0 ? placed : (this.nonces.get(path.join('/')) ?? 0) + plus
    return this.#forge(next, () => Math.max(0, next + this.#random.of([-2, -1, -1, 1, 2])))
  }

  /**
   * Returns the unsigned transaction of a payment.
   * @param own whether the transaction pays the payer's own wallet
   * @param plus number of earlier transactions in the same batch
   */
  unsigned(planned: PlannedRequest, own: boolean, plus = 0): UnsignedTransaction {
    const sub = this.#forge(planned.person.subAccount, () => this.#random.of([0, 1, 2, 3]))
    if (planned.asset === 'BTC') return this.#btc(sub, planned, own)
    const path = [sub, ETH.chain_index, this.#forge(0, () => 1)]
    const options: EthOptions = {
      nonce: this.#nonce(path, plus, planned.name),
      maxFeePerGas: this.#forge(2n * GWEI, () =>
        this.#random.of([GWEI, 3n * GWEI, 100_000n * GWEI]),
      ),
      ...(this.#random.rarely(20) ? { chainId: 1 } : {}),
    }
    const to = this.#forge(own ? this.address(ETH, path) : planned.to, () =>
      this.#random.of([...SINKS, this.address(ETH, [0, ETH.chain_index, 0])]),
    )
    const units = this.#forge(
      own ? 0n : planned.units,
      () => planned.units + BigInt(this.#random.of([-1, 1, 1000])),
    )
    const isToken = this.#forge(
      planned.asset === 'USDT_ETH' && !own,
      () => planned.asset !== 'USDT_ETH',
    )
    return isToken ? usdt(path, to, units, options) : eth(path, { ...options, to, value: units })
  }

  #btc(sub: number, planned: PlannedRequest, own: boolean): UnsignedTransaction {
    const workspace = {
      key: this.#keys.keys.secp256k1,
      publicKeyAt: this.#keys.at.secp256k1,
    } as unknown as Workspace
    const path = [sub, BTC.chain_index, 0]
    // Adds a new coin if there is none, or in one of four cases.
    const mine = this.#funding.filter((each) => each.path[0] === sub)
    if (mine.length === 0 || this.#random.below(4) === 0) {
      const coin = funding(workspace, [{ path, value: 300_000n }])
      mine.push({ path, coin })
      this.#funding.push({ path, coin })
      this.coins.set(`${coin.getId()}:0`, 300_000n)
    }
    const { coin, path: from } = this.#random.of(this.#forge(mine, () => this.#funding))
    const amount = this.#forge(own ? 290_000n : planned.units, () => planned.units + 1n)
    const changePath = this.#forge([sub, BTC.chain_index, CHANGE_INDEX], () => [
      this.#random.of([0, 1, 2]),
      BTC.chain_index,
      this.#random.of([0, 5, CHANGE_INDEX]),
    ])
    const back = scriptOf(this.address(BTC, [sub, BTC.chain_index, CHANGE_INDEX]))
    return btc(workspace, {
      inputs: [{ funding: coin, output: 0, path: from }],
      amount,
      payTo: this.#forge(own ? back : SINK_BTC_SCRIPT, () => back),
      ...(own
        ? {}
        : {
            change: {
              path: changePath,
              value: this.#forge(290_000n - amount, () => this.#random.of([1000n, 400_000n])),
            },
          }),
    })
  }

  /** Returns a sweep of a deposit address's balance to the first address of its wallet. */
  sweep(subAccount: number): Item {
    const index = 1 + this.#random.below(2)
    const asset = this.#random.of(['ETH', 'USDT_ETH'])
    const path = [subAccount, ETH.chain_index, this.#forge(index, () => this.#random.of([0, 1, 2]))]
    const home = this.address(ETH, [subAccount, ETH.chain_index, 0])
    const to = this.#forge(home, () =>
      this.#random.of([...SINKS, this.address(ETH, [3 - subAccount, ETH.chain_index, 0])]),
    )
    const options = {
      nonce: this.#nonce(path),
      maxFeePerGas: this.#forge(2n * GWEI, () => 100_000n * GWEI),
    }
    return {
      purpose: {
        kind: 'sweep',
        sub_account: this.#forge(subAccount, () => this.#random.of([0, 1, 2])),
        asset,
        address_index: index,
      },
      unsigned:
        this.#forge(asset, () => 'ETH') === 'ETH'
          ? eth(path, { ...options, to, value: 5n })
          : usdt(path, to, 5_000_000n, options),
    }
  }

  /** Returns a fuel transaction for one payment, or for several that share it. */
  fuel(wishes: readonly PlannedRequest[]): Item {
    const [first, ...others] = wishes as [PlannedRequest, ...PlannedRequest[]]
    const cost = (): { gas: string; max_fee_per_gas: string } => ({
      gas: this.#forge('65000', () => '6500000'),
      max_fee_per_gas: this.#forge(String(2n * GWEI), () => String(2000n * GWEI)),
    })
    const costs = wishes.map(cost)
    const most = costs.reduce(
      (sum, { gas, max_fee_per_gas: price }) => sum + (BigInt(gas) * BigInt(price) * 12n) / 10n,
      0n,
    )
    const path = this.#forge([0, ETH.chain_index, 0], () => [
      first.person.subAccount,
      ETH.chain_index,
      0,
    ])
    const to = this.#forge(this.address(ETH, [first.person.subAccount, ETH.chain_index, 0]), () =>
      this.#random.of(SINKS),
    )
    const value = this.#forge(most, () => this.#random.of([most + 1n, 2n * most, most / 2n]))
    const purpose = {
      kind: 'fuel',
      for: this.pay(first),
      ...costs[0],
      ...(others.length === 0
        ? {}
        : { beside: others.map((planned, at) => ({ for: this.pay(planned), ...costs[at + 1] })) }),
    }
    return { purpose, unsigned: eth(path, { to, value, nonce: this.#nonce(path) }) }
  }
}

/** Returns the script of a bech32 address of witness version 0. */
function scriptOf(address: string): Buffer {
  const { data } = bech32.fromBech32(address)
  return Buffer.concat([Buffer.from([0, data.length]), data])
}

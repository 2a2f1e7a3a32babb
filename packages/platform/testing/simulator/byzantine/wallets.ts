import {
  addressAt,
  evm,
  stellar,
  utxo,
  withNonce,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import { createHash } from 'node:crypto'
import { Transaction } from 'bitcoinjs-lib'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import { WholeKeys } from '../../../../signer/testing/whole-keys.ts'
import type { ClusterKeys } from './cluster-keys.ts'

/** Networks with nonces, with coins, and with sequences and an expiry; both engines are used. */
export const NETWORKS = ['ETH', 'BTC', 'XLM'] as const
export type Code = (typeof NETWORKS)[number]
/** The sub-account of all payments. */
export const SUB_ACCOUNT = 1
const CHANGE_INDEX = 0x7fffffff

/** An unspent output of the wallet. */
export interface Coin {
  outpoint: string
  txid: string
  vout: number
  value: bigint
  path: number[]
  address: string
  /** The transaction that created it, hex. */
  previous: string
}

/** Where a transaction takes its place on its chain. */
export interface Place {
  nonce: bigint | null
  coins: readonly Coin[]
  /** Unix seconds; null: it never expires. */
  validUntil: number | null
}

const GAS = 21_000n
const COIN = 50_000_000n
/** Seconds for which a transaction on Stellar is valid. */
const LIFETIME_S = 300
/** First sequence of the account on Stellar. */
const FIRST_SEQUENCE = 1000n

export const amountOf: Record<Code, bigint> = { ETH: 10n ** 15n, BTC: 1_000_000n, XLM: 10_000_000n }
const FEES: Record<Code, bigint> = { ETH: 42_000_000_000_000n, BTC: 5000n, XLM: 1000n }

/** Builds the transactions of the workspace. */
export class Wallets {
  readonly #keys: ClusterKeys
  readonly #foreign = new WholeKeys(99)
  #coins = 0

  constructor(keys: ClusterKeys) {
    this.#keys = keys
  }

  network(code: Code): Network {
    return registry.network(code)!
  }

  pathOf(code: Code, index = 0): number[] {
    return [SUB_ACCOUNT, this.network(code).chain_index, index]
  }

  address(code: Code, index = 0): string {
    const { curve } = this.network(code)
    return addressAt(this.network(code), this.#keys.certified[curve], this.pathOf(code, index))
  }

  /** Returns an address outside of the workspace. */
  sink(code: Code): string {
    const network = this.network(code)
    return addressAt(network, this.#foreign.keys[network.curve], [1, network.chain_index, 0])
  }

  firstNonce(code: Code): bigint {
    return code === 'XLM' ? FIRST_SEQUENCE : 0n
  }

  hasNonces(code: Code): boolean {
    return code !== 'BTC'
  }

  /** Creates an output that pays the wallet. Only those that the chain knows can be spent. */
  coin(): Coin {
    const path = this.pathOf('BTC')
    const address = this.address('BTC')
    const funding = new Transaction()
    funding.version = 2
    const source = createHash('sha256')
      .update(`coin ${this.#coins++}`)
      .digest()
    funding.addInput(source, 0, 0xfffffffd)
    funding.addOutput(utxo.scriptOf(this.network('BTC'), address), COIN)
    const txid = funding.getId()
    return {
      outpoint: `${txid}:0`,
      txid,
      vout: 0,
      value: COIN,
      path,
      address,
      previous: funding.toHex(),
    }
  }

  validUntil(code: Code, nowMs: number): number | null {
    return code === 'XLM' ? Math.floor(nowMs / 1000) + LIFETIME_S : null
  }

  /** Builds a payment. @param fee default: the usual one */
  pay(code: Code, amount: bigint, place: Place, fee = FEES[code]): UnsignedTransaction {
    const network = this.network(code)
    const path = this.pathOf(code)
    const common = { to: this.sink(code), amount, path }
    const asset = registry.asset(network.native_asset) as Asset
    switch (code) {
      case 'ETH':
        return this.#evm({ ...common, asset, nonce: place.nonce!, fee })
      case 'XLM':
        return stellar.buildPayment(network, {
          ...common,
          tag: null,
          fee,
          sequence: place.nonce!,
          validUntil: place.validUntil!,
          create: false,
          publicKey: this.#keys.whole.at[network.curve](path),
        })
      case 'BTC':
        return this.#spend(common.to, amount, place.coins, fee)
    }
  }

  /** Builds the transaction that cancels another one of the same place. */
  cancel(code: Code, place: Place): UnsignedTransaction | null {
    const fee = (FEES[code] * 5n) / 4n
    const asset = registry.asset(this.network(code).native_asset) as Asset
    if (code === 'ETH')
      return this.#evm({
        to: this.address('ETH'),
        amount: 0n,
        path: this.pathOf('ETH'),
        asset,
        nonce: place.nonce!,
        fee,
      })
    return null
  }

  /** Builds a sweep of the native coin from a deposit address. */
  sweep(index: number, amount: bigint, fee: bigint): UnsignedTransaction {
    const asset = registry.asset('ETH') as Asset
    const to = this.address('ETH')
    return this.#evm({ to, amount, path: this.pathOf('ETH', index), asset, nonce: 0n, fee })
  }

  /** Returns a transaction with another nonce; one with coins cannot have another. */
  renumbered(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
    return withNonce(registry.network(unsigned.network)!, unsigned, nonce)
  }

  #evm(o: {
    to: string
    amount: bigint
    path: number[]
    asset: Asset
    nonce: bigint
    fee: bigint
  }) {
    const price = o.fee / GAS
    return evm.buildTransfer(this.network('ETH'), {
      ...o,
      gas: GAS,
      fee: { maxFeePerGas: price, maxPriorityFeePerGas: price },
    })
  }

  #spend(to: string, amount: bigint, coins: readonly Coin[], fee: bigint): UnsignedTransaction {
    const total = coins.reduce((sum, { value }) => sum + value, 0n)
    const changePath = this.pathOf('BTC', CHANGE_INDEX)
    return utxo.buildTransfer(this.network('BTC'), {
      to,
      amount,
      changeAddress: this.address('BTC', CHANGE_INDEX),
      changePath,
      previous: new Map(coins.map(({ txid, previous }) => [txid, previous])),
      selection: { utxos: coins, change: total - amount - fee, fee } as unknown as Parameters<
        typeof utxo.buildTransfer
      >[1]['selection'],
    })
  }
}

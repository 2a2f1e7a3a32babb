import { createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Journal } from '../journal.ts'
import { addressOf } from './address.ts'
import type { Ledger } from './ledger.ts'
import type { Entry, Mempool } from './mempool.ts'
import type { UtxoNetwork } from './networks.ts'
import { SigningKey, spend, type OwnCoin } from './spend.ts'
import { outpoint, type Tx, type TxOut } from './transaction.ts'
import { matureCoins } from './miner-wallet.ts'

export type AddressType = 'legacy' | 'bech32'

/** The first line contains the seed; each further line is a generated address. */
type WalletRecord = { seed: string } | { label: string; type: AddressType }

export interface WalletAddress {
  address: string
  label: string
  script: Buffer
  key: SigningKey
  descriptor: string
}
export interface WalletCoin extends OwnCoin {
  owner: WalletAddress
  confirmations: number
}

/**
 * Wallet of a local node for its RPC methods. Its keys derive from a random seed, which is stored
 * with the chain. Its coins are looked up in the ledger, so a reorganization requires no special
 * handling.
 */
export class NodeWallet {
  readonly #network: UtxoNetwork
  readonly #journal: Journal<WalletRecord>
  readonly #byScript = new Map<string, WalletAddress>()
  #seed: string | undefined
  #count = 0

  private constructor(
    network: UtxoNetwork,
    journal: Journal<WalletRecord>,
    records: WalletRecord[],
  ) {
    this.#network = network
    this.#journal = journal
    for (const record of records) this.#apply(record)
  }

  static open(network: UtxoNetwork, home: string): NodeWallet {
    const { journal, records } = Journal.open<WalletRecord>(join(home, 'wallet.journal'))
    return new NodeWallet(network, journal, records)
  }

  close(): void {
    this.#journal.close()
  }

  /** Generates a new address. */
  newAddress(label: string, type: AddressType): WalletAddress {
    const seed: WalletRecord[] =
      this.#seed === undefined ? [{ seed: randomBytes(32).toString('hex') }] : []
    const records = [...seed, { label, type }]
    this.#journal.append(records)
    for (const record of records) this.#apply(record)
    return [...this.#byScript.values()].at(-1)!
  }

  /** Returns the wallet address of a script; undefined if this wallet cannot sign for it. */
  owner(script: Buffer): WalletAddress | undefined {
    return this.#byScript.get(script.toString('hex'))
  }

  /** Returns unspent coins: mature ones, and those of waiting transactions (no confirmations). */
  coins(ledger: Ledger, mempool: Mempool): WalletCoin[] {
    const inBlocks = [...matureCoins(ledger)].flatMap((each) =>
      this.#owned(each, ledger.tip.height - each.coin.height + 1),
    )
    const waiting = [...mempool.entries.values()].flatMap((entry) =>
      entry.tx.outs.flatMap(({ value, script }, vout) =>
        this.#owned(
          {
            txid: entry.tx.txid,
            vout,
            coin: { value, script, height: entry.height + 1, coinbase: false },
          },
          0,
        ),
      ),
    )
    return [...inBlocks, ...waiting].filter(
      ({ txid, vout }) => !mempool.spenders.has(outpoint(txid, vout)),
    )
  }

  /**
   * Returns whether only this wallet can replace a waiting transaction, because it owns all inputs.
   */
  isOwn({ coins }: Entry): boolean {
    return coins.every(({ script }) => this.owner(script) !== undefined)
  }

  /** Returns a signed payment with its change to a new address, or the maximum payable amount. */
  pay(coins: readonly WalletCoin[], to: TxOut): Tx | { available: bigint } {
    const tried = spend(this.#network, coins, to, coins[0]?.coin.script ?? to.script)
    if ('available' in tried) return tried
    return spend(
      this.#network,
      coins,
      to,
      this.newAddress('', this.#network.segwit ? 'bech32' : 'legacy').script,
    )
  }

  #owned(coin: Omit<OwnCoin, 'key'>, confirmations: number): WalletCoin[] {
    const owner = this.owner(coin.coin.script)
    return owner ? [{ ...coin, owner, key: owner.key, confirmations }] : []
  }

  #apply(record: WalletRecord): void {
    if ('seed' in record) {
      this.#seed = record.seed
      return
    }
    const key = new SigningKey(
      createHmac('sha256', Buffer.from(this.#seed!, 'hex')).update(`key ${this.#count}`).digest(),
    )
    this.#count += 1
    const script = record.type === 'bech32' ? key.segwitScript : key.legacyScript
    const hex = key.publicKey.toString('hex')
    this.#byScript.set(script.toString('hex'), {
      address: addressOf(script, this.#network)!,
      label: record.label,
      script,
      key,
      descriptor: record.type === 'bech32' ? `wpkh(${hex})` : `pkh(${hex})`,
    })
  }
}

import { sha256 } from './encoding.ts'
import type { Ledger } from './ledger.ts'
import type { UtxoNetwork } from './networks.ts'
import { SigningKey, spend, type OwnCoin } from './spend.ts'
import type { Tx, TxOut } from './transaction.ts'

export type OwnPlace = Pick<OwnCoin, 'txid' | 'vout'>

/**
 * The miner's own key: it holds every coinbase and pays what the operator funds. Worthless by
 * design.
 */
export class MinerWallet {
  readonly #key = new SigningKey(sha256(Buffer.from('local regtest miner')))
  readonly #network: UtxoNetwork
  readonly script: Buffer

  constructor(network: UtxoNetwork) {
    this.#network = network
    this.script = network.segwit ? this.#key.segwitScript : this.#key.legacyScript
  }

  /**
   * A signed payment from mature coins that nothing in the mempool spends, or what is available.
   * @param only the one coin to spend
   */
  pay(
    ledger: Ledger,
    isSpent: (key: string) => boolean,
    to: TxOut,
    only?: OwnPlace,
  ): Tx | { available: bigint } {
    const own = this.#coins(ledger, isSpent).filter(
      ({ txid, vout }) => only === undefined || (txid === only.txid && vout === only.vout),
    )
    return spend(
      this.#network,
      own.map((each) => ({ ...each, key: this.#key })),
      to,
      this.script,
    )
  }

  /**
   * The largest coin that is the first output of its transaction: of such a one a token can be
   * made.
   */
  genesisPlace(ledger: Ledger, isSpent: (key: string) => boolean): OwnPlace | undefined {
    return this.#coins(ledger, isSpent)
      .filter(({ vout }) => vout === 0)
      .reduce<Omit<OwnCoin, 'key'> | undefined>(
        (most, each) => (most && most.coin.value >= each.coin.value ? most : each),
        undefined,
      )
  }

  #coins(ledger: Ledger, isSpent: (key: string) => boolean): Omit<OwnCoin, 'key'>[] {
    return [...matureCoins(ledger)].filter(
      ({ coin, txid, vout }) => coin.script.equals(this.script) && !isSpent(`${txid}:${vout}`),
    )
  }
}

/** Coins that a transaction of the next block may spend. */
export function* matureCoins(ledger: Ledger): Generator<Omit<OwnCoin, 'key'>> {
  const height = ledger.tip.height + 1
  for (const [outpoint, coin] of ledger.coins) {
    if (coin.coinbase && height - coin.height < ledger.network.maturity) continue
    const [txid = '', vout] = outpoint.split(':')
    yield { txid, vout: Number(vout), coin }
  }
}

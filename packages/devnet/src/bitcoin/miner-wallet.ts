import { sha256 } from './encoding.ts'
import type { Ledger } from './ledger.ts'
import type { UtxoNetwork } from './networks.ts'
import { SigningKey, spend, type OwnCoin } from './spend.ts'
import type { Tx, TxOut } from './transaction.ts'

export type OwnPlace = Pick<OwnCoin, 'txid' | 'vout'>

/**
 * Wallet of the miner: it owns every coinbase and pays the operator's fund requests. Its key is
 * public, so the coins are worthless by design.
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
   * Returns a signed payment from mature coins that no mempool transaction spends, or the available
   * amount.
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
   * Returns the largest coin that is the first output of its transaction, which is required to
   * create a token.
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

/** Iterates over the coins that a transaction of the next block can spend. */
export function* matureCoins(ledger: Ledger): Generator<Omit<OwnCoin, 'key'>> {
  const height = ledger.tip.height + 1
  for (const [outpoint, coin] of ledger.coins) {
    if (coin.coinbase && height - coin.height < ledger.network.maturity) continue
    const [txid = '', vout] = outpoint.split(':')
    yield { txid, vout: Number(vout), coin }
  }
}

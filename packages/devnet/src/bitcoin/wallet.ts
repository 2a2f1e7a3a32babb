import bitcore from 'bitcore-lib'
import { data, hash160, hash256, internal, sha256, uint32, uint64 } from './encoding.ts'
import { COINBASE_MATURITY, type Coin, type Ledger } from './ledger.ts'
import { dustLimit } from './policy.ts'
import { makeTx, type Tx, type TxIn, type TxOut } from './transaction.ts'

const { PrivateKey, crypto } = bitcore

const FEE_RATE = 2n
const OVERHEAD_VBYTES = 11n
const INPUT_VBYTES = 69n

/** The miner's own key: it holds every coinbase and pays what the operator funds. Worthless by design. */
export class MinerWallet {
  readonly #key = new PrivateKey(sha256(Buffer.from('local regtest miner')).toString('hex'))
  readonly #publicKey = this.#key.toPublicKey().toBuffer()
  readonly script = Buffer.concat([Buffer.from([0, 20]), hash160(this.#publicKey)])

  /** A signed payment from mature coins that nothing in the mempool spends, or what is available. */
  pay(ledger: Ledger, isSpent: (key: string) => boolean, to: TxOut): Tx | { available: bigint } {
    const height = ledger.tip.height + 1
    const coins = [...ledger.coins]
      .filter(([key, coin]) => coin.script.equals(this.script) && !(coin.coinbase && height - coin.height < COINBASE_MATURITY) && !isSpent(key))
      .sort(([, a], [, b]) => (a.value < b.value ? 1 : a.value > b.value ? -1 : 0))
    const chosen: [string, Coin][] = []
    let total = 0n
    for (const coin of coins) {
      if (total >= to.value + this.#fee(chosen.length, to)) break
      chosen.push(coin)
      total += coin[1].value
    }
    const fee = this.#fee(chosen.length, to)
    if (total < to.value + fee) return { available: total > fee ? total - fee : 0n }
    const change = { value: total - to.value - fee, script: this.script }
    const outs = change.value >= dustLimit(change.script) ? [to, change] : [to]
    const ins = chosen.map(([key]): TxIn => {
      const [txid = '', vout] = key.split(':')
      return { txid, vout: Number(vout), script: Buffer.alloc(0), sequence: 0xfffffffd, witness: [] }
    })
    return this.#sign(ins, outs, chosen.map(([, coin]) => coin))
  }

  #fee(inputs: number, to: TxOut): bigint {
    const outputs = BigInt(9 + to.script.length) + BigInt(9 + this.script.length)
    return FEE_RATE * (OVERHEAD_VBYTES + BigInt(inputs) * INPUT_VBYTES + outputs)
  }

  #sign(ins: TxIn[], outs: TxOut[], coins: Coin[]): Tx {
    const version = 2
    const prevouts = hash256(Buffer.concat(ins.flatMap(({ txid, vout }) => [internal(txid), uint32(vout)])))
    const sequences = hash256(Buffer.concat(ins.map(({ sequence }) => uint32(sequence))))
    const outputs = hash256(Buffer.concat(outs.flatMap(({ value, script }) => [uint64(value), data(script)])))
    const code = Buffer.concat([Buffer.from('76a914', 'hex'), this.script.subarray(2), Buffer.from('88ac', 'hex')])
    for (const [index, input] of ins.entries()) {
      const digest = hash256(
        Buffer.concat([
          uint32(version),
          prevouts,
          sequences,
          internal(input.txid),
          uint32(input.vout),
          data(code),
          uint64(coins[index]!.value),
          uint32(input.sequence),
          outputs,
          uint32(0),
          uint32(1),
        ]),
      )
      input.witness = [Buffer.concat([crypto.ECDSA.sign(digest, this.#key).toDER(), Buffer.from([1])]), this.#publicKey]
    }
    return makeTx({ version, ins, outs, locktime: 0 })
  }
}

import bitcore from 'bitcore-lib'
import { data, hash160, hash256, internal, sha256, uint32, uint64 } from './encoding.ts'
import type { Coin, Ledger } from './ledger.ts'
import type { UtxoNetwork } from './networks.ts'
import { dustLimit } from './policy.ts'
import { makeTx, type Tx, type TxIn, type TxOut } from './transaction.ts'

const { PrivateKey, crypto } = bitcore

/** Times what nodes ask at least. */
const FEE_FACTOR = 2n
const OVERHEAD_VBYTES = 11n
const INPUT_VBYTES = { segwit: 69n, plain: 149n }
const VERSION = 2
const SIGHASH_ALL = 0x01
const SIGHASH_FORKID = 0x40

/** The miner's own key: it holds every coinbase and pays what the operator funds. Worthless by design. */
export class MinerWallet {
  readonly #key = new PrivateKey(sha256(Buffer.from('local regtest miner')).toString('hex'))
  readonly #publicKey = this.#key.toPublicKey().toBuffer()
  readonly #network: UtxoNetwork
  /** What its signatures cover as the script of the output they spend. */
  readonly #code = Buffer.concat([Buffer.from('76a914', 'hex'), hash160(this.#publicKey), Buffer.from('88ac', 'hex')])
  readonly script: Buffer

  constructor(network: UtxoNetwork) {
    this.#network = network
    this.script = network.segwit ? Buffer.concat([Buffer.from([0, 20]), hash160(this.#publicKey)]) : this.#code
  }

  /** A signed payment from mature coins that nothing in the mempool spends, or what is available. */
  pay(ledger: Ledger, isSpent: (key: string) => boolean, to: TxOut): Tx | { available: bigint } {
    const height = ledger.tip.height + 1
    const coins = [...ledger.coins]
      .filter(([key, coin]) => coin.script.equals(this.script) && !(coin.coinbase && height - coin.height < this.#network.maturity) && !isSpent(key))
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
    const outs = change.value >= dustLimit(change.script, this.#network) ? [to, change] : [to]
    const ins = chosen.map(([key]): TxIn => {
      const [txid = '', vout] = key.split(':')
      return { txid, vout: Number(vout), script: Buffer.alloc(0), sequence: this.#network.replacement === 'none' ? 0xffffffff : 0xfffffffd, witness: [] }
    })
    return this.#sign(ins, outs, chosen.map(([, coin]) => coin))
  }

  #fee(inputs: number, to: TxOut): bigint {
    const outputs = BigInt(9 + to.script.length) + BigInt(9 + this.script.length)
    const input = INPUT_VBYTES[this.#network.segwit ? 'segwit' : 'plain']
    return FEE_FACTOR * this.#network.relayRate * (OVERHEAD_VBYTES + BigInt(inputs) * input + outputs)
  }

  #sign(ins: TxIn[], outs: TxOut[], coins: Coin[]): Tx {
    const { segwit, forkId } = this.#network
    const hashType = forkId ? SIGHASH_ALL | SIGHASH_FORKID : SIGHASH_ALL
    const digests = ins.map((_, index) => (segwit || forkId ? this.#digestWithValue(ins, outs, coins, index, hashType) : this.#digest(ins, outs, index, hashType)))
    for (const [index, input] of ins.entries()) {
      const signature = Buffer.concat([crypto.ECDSA.sign(digests[index]!, this.#key).toDER(), Buffer.from([hashType])])
      if (segwit) input.witness = [signature, this.#publicKey]
      else input.script = Buffer.concat([data(signature), data(this.#publicKey)])
    }
    return makeTx({ version: VERSION, ins, outs, locktime: 0 })
  }

  /** BIP143. */
  #digestWithValue(ins: readonly TxIn[], outs: readonly TxOut[], coins: readonly Coin[], index: number, hashType: number): Buffer {
    const { txid, vout, sequence } = ins[index]!
    return hash256(
      Buffer.concat([
        uint32(VERSION),
        hash256(Buffer.concat(ins.flatMap((input) => [internal(input.txid), uint32(input.vout)]))),
        hash256(Buffer.concat(ins.map((input) => uint32(input.sequence)))),
        internal(txid),
        uint32(vout),
        data(this.#code),
        uint64(coins[index]!.value),
        uint32(sequence),
        hash256(Buffer.concat(outs.flatMap(({ value, script }) => [uint64(value), data(script)]))),
        uint32(0),
        uint32(hashType),
      ]),
    )
  }

  /** The first algorithm: the transaction with the spent script in the place of the input's own. */
  #digest(ins: readonly TxIn[], outs: readonly TxOut[], index: number, hashType: number): Buffer {
    const blank = ins.map((input, at) => ({ ...input, script: at === index ? this.#code : Buffer.alloc(0), witness: [] }))
    return hash256(Buffer.concat([makeTx({ version: VERSION, ins: blank, outs: [...outs], locktime: 0 }).raw, uint32(hashType)]))
  }
}

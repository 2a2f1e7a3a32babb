import bitcore from 'bitcore-lib'
import { data, hash160, hash256, internal, uint32, uint64 } from './encoding.ts'
import { publicKeyOf } from '../public-key.ts'
import type { Coin } from './ledger.ts'
import type { UtxoNetwork } from './networks.ts'
import { dustLimit } from './policy.ts'
import { makeTx, type Tx, type TxIn, type TxOut } from './transaction.ts'

const { PrivateKey, crypto } = bitcore

/** Factor of the fee over the minimum that nodes require. */
const FEE_FACTOR = 2n
const OVERHEAD_VBYTES = 11n
const INPUT_VBYTES = { segwit: 69n, plain: 149n }
const VERSION = 2
const SIGHASH_ALL = 0x01
const SIGHASH_FORKID = 0x40

/** A private key, and the scripts of its addresses. */
export class SigningKey {
  readonly #key: InstanceType<typeof PrivateKey>
  readonly publicKey: Buffer
  readonly legacyScript: Buffer
  readonly segwitScript: Buffer

  constructor(secret: Buffer) {
    this.#key = new PrivateKey(secret.toString('hex'))
    this.publicKey = publicKeyOf(secret, 'compressed')
    this.legacyScript = Buffer.concat([
      Buffer.from('76a914', 'hex'),
      hash160(this.publicKey),
      Buffer.from('88ac', 'hex'),
    ])
    this.segwitScript = Buffer.concat([Buffer.from([0, 20]), hash160(this.publicKey)])
  }

  sign(digest: Buffer, hashType: number): Buffer {
    return Buffer.concat([crypto.ECDSA.sign(digest, this.#key).toDER(), Buffer.from([hashType])])
  }
}

/** A coin with its outpoint and the key of its script. */
export interface OwnCoin {
  txid: string
  vout: number
  coin: Coin
  key: SigningKey
}

/**
 * Returns a signed payment from the largest of these coins, with the change to a given script; or
 * the maximum payable amount.
 */
export function spend(
  network: UtxoNetwork,
  coins: readonly OwnCoin[],
  to: TxOut,
  change: Buffer,
): Tx | { available: bigint } {
  const sorted = coins.toSorted(({ coin: a }, { coin: b }) =>
    a.value < b.value ? 1 : a.value > b.value ? -1 : 0,
  )
  const chosen: OwnCoin[] = []
  let total = 0n
  for (const coin of sorted) {
    if (total >= to.value + feeOf(network, chosen, to, change)) break
    chosen.push(coin)
    total += coin.coin.value
  }
  const fee = feeOf(network, chosen, to, change)
  if (total < to.value + fee) return { available: total > fee ? total - fee : 0n }
  const rest = { value: total - to.value - fee, script: change }
  return sign(network, chosen, rest.value >= dustLimit(change, network) ? [to, rest] : [to])
}

const isSegwit = ({ coin, key }: OwnCoin): boolean => coin.script.equals(key.segwitScript)

function feeOf(
  network: UtxoNetwork,
  chosen: readonly OwnCoin[],
  to: TxOut,
  change: Buffer,
): bigint {
  const outputs = BigInt(9 + to.script.length) + BigInt(9 + change.length)
  const inputs = chosen.reduce(
    (sum, coin) => sum + INPUT_VBYTES[isSegwit(coin) ? 'segwit' : 'plain'],
    0n,
  )
  return FEE_FACTOR * network.relayRate * (OVERHEAD_VBYTES + inputs + outputs)
}

function sign(network: UtxoNetwork, coins: readonly OwnCoin[], outs: TxOut[]): Tx {
  const sequence = network.replacement === 'none' ? 0xffffffff : 0xfffffffd
  const ins = coins.map(({ txid, vout }): TxIn => ({
    txid,
    vout,
    script: Buffer.alloc(0),
    sequence,
    witness: [],
  }))
  const hashType = network.forkId ? SIGHASH_ALL | SIGHASH_FORKID : SIGHASH_ALL
  const digests = coins.map((coin, index) => {
    const digest = isSegwit(coin) || network.forkId ? digestWithValue : plainDigest
    return digest(ins, outs, coin, index, hashType)
  })
  for (const [index, input] of ins.entries()) {
    const { key } = coins[index]!
    const signature = key.sign(digests[index]!, hashType)
    if (isSegwit(coins[index]!)) input.witness = [signature, key.publicKey]
    else input.script = Buffer.concat([data(signature), data(key.publicKey)])
  }
  return makeTx({ version: VERSION, ins, outs, locktime: 0 })
}

/** Computes the signature hash of BIP143. */
function digestWithValue(
  ins: readonly TxIn[],
  outs: readonly TxOut[],
  { coin, key }: OwnCoin,
  index: number,
  hashType: number,
): Buffer {
  const { txid, vout, sequence } = ins[index]!
  return hash256(
    Buffer.concat([
      uint32(VERSION),
      hash256(Buffer.concat(ins.flatMap((input) => [internal(input.txid), uint32(input.vout)]))),
      hash256(Buffer.concat(ins.map((input) => uint32(input.sequence)))),
      internal(txid),
      uint32(vout),
      data(key.legacyScript),
      uint64(coin.value),
      uint32(sequence),
      hash256(Buffer.concat(outs.flatMap(({ value, script }) => [uint64(value), data(script)]))),
      uint32(0),
      uint32(hashType),
    ]),
  )
}

/**
 * Computes the original signature hash: the transaction with the spent script instead of the
 * input's own.
 */
function plainDigest(
  ins: readonly TxIn[],
  outs: readonly TxOut[],
  { key }: OwnCoin,
  index: number,
  hashType: number,
): Buffer {
  const blank = ins.map((input, at) => ({
    ...input,
    script: at === index ? key.legacyScript : Buffer.alloc(0),
    witness: [],
  }))
  return hash256(
    Buffer.concat([
      makeTx({ version: VERSION, ins: blank, outs: [...outs], locktime: 0 }).raw,
      uint32(hashType),
    ]),
  )
}

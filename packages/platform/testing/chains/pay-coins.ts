import { randomBytes } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { payments, script, Transaction } from 'bitcoinjs-lib'
import { familyOf, loadRegistry, utxo, type Network } from '@custody/chains'
import { rpc, type TestPlatform } from '../harness.ts'

const BTC = loadRegistry('local').network('BTC') as Network

/** Value of each coin in satoshi. */
export const COIN = 100_000

/** Returns an amount in BTC. */
export const btc = (satoshi: number | bigint): string => (Number(satoshi) / 1e8).toFixed(8)

/** Pays an address this number of coins, each of {@link COIN}, in one transaction of an outside wallet. */
export async function payCoins(
  platform: TestPlatform,
  address: string,
  count: number,
): Promise<void> {
  const secret = randomBytes(32)
  const publicKey = secp256k1.getPublicKey(secret, true)
  const from = familyOf(BTC).address(BTC, publicKey)
  const value = BigInt(count * COIN + 1_000_000)
  const funding = await platform.fund('BTC', from, btc(value))
  const parent = Transaction.fromHex(
    await rpc<string>(platform, 'BTC', 'getrawtransaction', [funding]),
  )
  const own = utxo.scriptOf(BTC, from)
  const index = parent.outs.findIndex(({ script: each }) => Buffer.compare(each, own) === 0)
  const transaction = new Transaction()
  transaction.version = 2
  transaction.addInput(parent.getHash(), index)
  for (let at = 0; at < count; at++)
    transaction.addOutput(utxo.scriptOf(BTC, address), BigInt(COIN))
  const code = payments.p2pkh({ pubkey: publicKey }).output as Uint8Array
  const digest = transaction.hashForWitnessV0(0, code, value, Transaction.SIGHASH_ALL)
  const signature = secp256k1.sign(digest, secret, { prehash: false })
  transaction.setWitness(0, [
    script.signature.encode(signature, Transaction.SIGHASH_ALL),
    publicKey,
  ])
  await rpc(platform, 'BTC', 'sendrawtransaction', [transaction.toHex()])
}

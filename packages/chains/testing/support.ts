import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { HDKey } from '@scure/bip32'
import { Transaction } from 'bitcoinjs-lib'
import {
  ChainError,
  familyOf,
  loadRegistry,
  publicKeysBelow,
  utxo,
  type Asset,
  type Network,
  type PublicKeyAt,
  type SignatureBytes,
  type SigningItem,
  type UtxoParams,
} from '../src/index.ts'

export const local = loadRegistry('local')
export const mainnet = loadRegistry('mainnet')
export const BTC = local.network('BTC') as Network
export const ETH = local.network('ETH') as Network
export const BTC_ASSETS = local.assetsOf('BTC')
export const ETH_ASSETS = local.assetsOf('ETH')
export const USDT = local.asset('USDT_ETH') as Asset
export const NATIVE = local.asset('ETH') as Asset

/** The same family with the output type of Dash and Dogecoin. */
export const P2PKH: Network = { ...BTC, utxo: { ...(BTC.utxo as UtxoParams), script: 'p2pkh' } }

/** One whole key that replaces a workspace's three shares. */
const master = HDKey.fromMasterSeed(createHash('sha256').update('tests of the chains').digest())
export const workspaceKey = {
  curve: 'secp256k1' as const,
  publicKey: master.publicKey as Uint8Array,
  chainCode: master.chainCode as Uint8Array,
}
export const publicKeyAt: PublicKeyAt = publicKeysBelow(workspaceKey)

export function privateKeyAt(path: readonly number[]): Uint8Array {
  return path.reduce((node, index) => node.deriveChild(index), master).privateKey as Uint8Array
}

export function signDigest(message: Uint8Array, privateKey: Uint8Array): SignatureBytes {
  const signature = secp256k1.sign(message, privateKey, { prehash: false, format: 'recovered' })
  return { signature: signature.subarray(1), recoveryId: signature[0] as number }
}

export function sign(items: SigningItem[]): SignatureBytes[] {
  return items.map((item) => signDigest(item.message, privateKeyAt(item.path)))
}

/** Returns the other valid form of the signature: r, n − s. */
export function highS({ signature, recoveryId }: SignatureBytes): SignatureBytes {
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`)
  const flipped = Buffer.from((secp256k1.Point.Fn.ORDER - s).toString(16).padStart(64, '0'), 'hex')
  return {
    signature: Buffer.concat([signature.subarray(0, 32), flipped]),
    recoveryId: recoveryId === null ? null : recoveryId ^ 1,
  }
}

export function refuses(work: () => unknown, code: string | RegExp, message?: RegExp): void {
  assert.throws(work, (error: unknown) => {
    assert.ok(
      error instanceof ChainError,
      `not a ChainError: ${error instanceof Error ? error.stack : String(error)}`,
    )
    if (typeof code === 'string') assert.equal(error.code, code, error.message)
    else assert.match(error.code, code, error.message)
    if (message) assert.match(error.message, message)
    return true
  })
}

export interface Coin {
  value: bigint
  path: number[]
  address?: string
}

/** Creates a transaction without real inputs that pays these outputs; its id and bytes are real. */
export function fund(
  network: Network,
  coins: Coin[],
  salt = 0,
  withWitness = false,
): { txid: string; hex: string; utxos: utxo.Utxo[] } {
  const transaction = new Transaction()
  transaction.version = 2
  transaction.addInput(createHash('sha256').update(`funding ${salt}`).digest(), salt)
  const addresses = coins.map((coin) => coin.address ?? addressOf(network, coin.path))
  coins.forEach((coin, at) =>
    transaction.addOutput(utxo.scriptOf(network, addresses[at] as string), coin.value),
  )
  if (withWitness) transaction.setWitness(0, [Buffer.alloc(71, 1), Buffer.alloc(33, 2)])
  const txid = transaction.getId()
  return {
    txid,
    hex: transaction.toHex(),
    utxos: coins.map((coin, vout) => ({
      txid,
      vout,
      value: coin.value,
      path: coin.path,
      address: addresses[vout] as string,
    })),
  }
}

export function addressOf(network: Network, path: number[]): string {
  return familyOf(network).address(network, publicKeyAt(path))
}

export function previousOf(...funds: { txid: string; hex: string }[]): Map<string, string> {
  return new Map(funds.map(({ txid, hex }) => [txid, hex]))
}

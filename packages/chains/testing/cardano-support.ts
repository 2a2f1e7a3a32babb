import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import {
  cardano,
  CHANGE_INDEX,
  familyOf,
  readRegistryFile,
  type Asset,
  type Network,
  type PublicKeyAt,
  type UtxoTokens,
  type SignatureBytes,
  type SigningItem,
  type UnsignedTransaction,
} from '../src/index.ts'
import { addressBytes } from '../src/cardano/address.ts'
import { encodeBody, hashOf, type Assets } from '../src/cardano/body.ts'

const file = readRegistryFile()
const {
  ready: _,
  mainnet,
  local,
  ...line
} = file.networks.find(({ code }) => code === 'ADA') as (typeof file.networks)[number]
export const ADA: Network = { ...line, ...mainnet, mode: 'mainnet' }
export const TEST: Network = { ...line, ...local, mode: 'local' }
const ASSETS: Asset[] = file.assets
  .filter(({ network }) => network === 'ADA')
  .map((each) => ({
    asset_name: each.asset_name,
    name: each.name,
    ticker: each.ticker,
    blockchain: 'Cardano',
    network: 'ADA',
    family: 'cardano',
    decimals: each.decimals,
    type: each.type,
    contract_address: null,
    fee_asset: 'ADA',
    takes_tag: false,
    requires_tag: false,
    min_withdrawal: each.min_withdrawal,
    issuer: null,
    bridged: false,
    status: 'active',
    status_since: null,
    status_reason: null,
  }))
export const { address, validate, signing, assemble, exclusive } = familyOf(ADA)
const { decode } = familyOf(ADA)

export const PATH = [1, 1815, 0]
export const OTHER = [1, 1815, 5]
export const CHANGE = [1, 1815, CHANGE_INDEX]
export const TO = 'addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8'
export const TTL = 150_000_000n
export const TOKEN = `${'ab'.repeat(28)}746f6b656e`
export const SECOND = `${'0c'.repeat(28)}`

const secretAt = (path: readonly number[]): Uint8Array =>
  createHash('sha256')
    .update(`tests of cardano ${path.join('/')}`)
    .digest()
export const publicKeyAt: PublicKeyAt = (path) => ed25519.getPublicKey(secretAt(path))
export const sign = (items: SigningItem[]): SignatureBytes[] =>
  items.map(({ path, message }) => ({
    signature: ed25519.sign(message, secretAt(path)),
    recoveryId: null,
  }))
export const addressAt = (path: readonly number[], network = ADA): string =>
  address(network, publicKeyAt(path))

export interface CardanoInputs {
  value: bigint
  path?: number[]
  assets?: Record<string, string>
}

/** Creates coins in one transaction without real inputs; its id and body are real. */
export function fund(
  inputs: CardanoInputs[],
  salt = 1,
  network = ADA,
): { coins: cardano.Coin[]; previous: Map<string, string> } {
  const outputs = inputs.map(({ value, path = PATH, assets = {} }) => ({
    address: addressBytes(network, addressAt(path, network)),
    coin: value,
    assets: new Map(
      Object.entries(assets).map(([unit, quantity]) => [unit, BigInt(quantity)]),
    ) as Assets,
  }))
  const body = encodeBody({
    inputs: [{ txid: salt.toString(16).padStart(64, '0'), index: 0 }],
    outputs,
    fee: 200_000n,
    ttl: TTL,
  })
  const txid = Buffer.from(hashOf(body)).toString('hex')
  const riders = (assets?: Record<string, string>): UtxoTokens | null =>
    assets ? { assets, script_bytes: 0 } : null
  return {
    coins: inputs.map(({ value, path = PATH, assets }, vout) => ({
      txid,
      vout,
      value,
      path,
      address: addressAt(path, network),
      riders: riders(assets),
    })),
    previous: new Map([[txid, Buffer.from(body).toString('hex')]]),
  }
}

export function build(
  inputs: CardanoInputs[],
  amount: bigint,
  o: { to?: string; rate?: bigint; network?: Network; salt?: number } = {},
): { unsigned: UnsignedTransaction; selection: cardano.Selection } {
  const network = o.network ?? ADA
  const { coins, previous } = fund(inputs, o.salt, network)
  const to = o.to ?? TO
  const changeAddress = addressAt(CHANGE, network)
  const selection = cardano.selectCoins(network, {
    coins,
    to,
    amount,
    changeAddress,
    rate: o.rate ?? 44n,
    ttl: TTL,
    parameters: cardano.PARAMETERS,
  })
  return {
    selection,
    unsigned: cardano.buildTransfer(network, {
      selection,
      to,
      amount,
      changeAddress,
      changePath: CHANGE,
      ttl: TTL,
      previous,
    }),
  }
}
export const decoded = (unsigned: UnsignedTransaction, network = ADA) =>
  decode(network, unsigned, ASSETS, publicKeyAt)

import { createHash } from 'node:crypto'
import {
  Address,
  AssetName,
  Assets,
  BigNum,
  Credential,
  EnterpriseAddress,
  FixedTransaction,
  Int,
  make_vkey_witness,
  Mint,
  MintAssets,
  MultiAsset,
  NativeScript,
  NativeScripts,
  PrivateKey,
  ScriptPubkey,
  TransactionBody,
  TransactionHash,
  TransactionInput,
  TransactionInputs,
  TransactionOutput,
  TransactionOutputs,
  TransactionWitnessSet,
  Value,
  Vkeywitnesses,
} from '@emurgo/cardano-serialization-lib-nodejs'

/** Network id of the ledger for every network except the main one. */
const TEST_NETWORK = 0
const LOVELACE = '40000000000000000'
/** Fee in lovelace, sufficient for every transaction of the faucet. */
const FEE = 1_000_000n

const KEY = PrivateKey.from_normal_bytes(
  createHash('sha256').update('the faucet of the local Cardano network').digest(),
)
const KEY_HASH = KEY.to_public().hash()
const ADDRESS = EnterpriseAddress.new(TEST_NETWORK, Credential.from_keyhash(KEY_HASH)).to_address()
/** Minting policy of the faucet's tokens: a signature by the faucet's key. */
const SCRIPT = NativeScript.new_script_pubkey(ScriptPubkey.new(KEY_HASH))
const POLICY = SCRIPT.hash()

export const FAUCET = ADDRESS.to_bech32()
const GENESIS_TX = createHash('sha256')
  .update('the first output of the local Cardano network')
  .digest('hex')

/** Returns the initial state: one output of the faucet, as the ledger's map of unspent outputs. */
export function genesis(): { utxos: Uint8Array; outpoint: { hash: string; index: number } } {
  const input = TransactionInput.new(TransactionHash.from_hex(GENESIS_TX), 0).to_bytes()
  const output = TransactionOutput.new(ADDRESS, Value.new(BigNum.from_str(LOVELACE))).to_bytes()
  return {
    utxos: Uint8Array.of(0xa1, ...input, ...output),
    outpoint: { hash: GENESIS_TX, index: 0 },
  }
}
export const GENESIS_LOVELACE = BigInt(LOVELACE)

function bundle(tokens: Record<string, string>): MultiAsset {
  const assets = Assets.new()
  for (const [name, quantity] of Object.entries(tokens))
    assets.insert(AssetName.new(Buffer.from(name)), BigNum.from_str(quantity))
  const all = MultiAsset.new()
  all.insert(POLICY, assets)
  return all
}

/**
 * Returns a signed payment from an output of the faucet, with tokens minted for it.
 * @param o.tokens quantities by name
 * @param o.ttl first slot that can no longer include it; it also makes equal payments distinct
 */
export function pay(o: {
  from: { hash: string; index: number; coin: bigint }
  to: string
  coin: bigint
  tokens: Record<string, string>
  ttl: number
}): { raw: string; hash: string } {
  const inputs = TransactionInputs.new()
  inputs.add(TransactionInput.new(TransactionHash.from_hex(o.from.hash), o.from.index))
  const value = Value.new(BigNum.from_str(o.coin.toString()))
  const names = Object.entries(o.tokens)
  if (names.length > 0) value.set_multiasset(bundle(o.tokens))
  const outputs = TransactionOutputs.new()
  outputs.add(TransactionOutput.new(addressOf(o.to) as Address, value))
  outputs.add(
    TransactionOutput.new(
      ADDRESS,
      Value.new(BigNum.from_str((o.from.coin - o.coin - FEE).toString())),
    ),
  )
  const body = TransactionBody.new_tx_body(inputs, outputs, BigNum.from_str(FEE.toString()))
  body.set_ttl(BigNum.from_str(String(o.ttl)))
  const witnesses = TransactionWitnessSet.new()
  if (names.length > 0) {
    const mint = MintAssets.new()
    for (const [name, quantity] of names)
      mint.insert(AssetName.new(Buffer.from(name)), Int.new(BigNum.from_str(quantity)))
    body.set_mint(Mint.new_from_entry(POLICY, mint))
    const scripts = NativeScripts.new()
    scripts.add(SCRIPT)
    witnesses.set_native_scripts(scripts)
  }
  const bytes = body.to_bytes()
  const hash = FixedTransaction.new_from_body_bytes(bytes).transaction_hash()
  const keys = Vkeywitnesses.new()
  keys.add(make_vkey_witness(hash, KEY))
  witnesses.set_vkeys(keys)
  return {
    raw: FixedTransaction.new(bytes, witnesses.to_bytes(), true).to_hex(),
    hash: hash.to_hex(),
  }
}

/** Returns the address of a key, without a stake part. */
export function addressOfSecret(secret: Uint8Array): string {
  const hash = PrivateKey.from_normal_bytes(secret).to_public().hash()
  return EnterpriseAddress.new(TEST_NETWORK, Credential.from_keyhash(hash)).to_address().to_bech32()
}

/** Returns an address of this network that can be paid, or undefined. */
export function addressOf(text: string): Address | undefined {
  try {
    const address = Address.from_bech32(text)
    return address.network_id() === TEST_NETWORK && address.payment_cred() !== undefined
      ? address
      : undefined
  } catch {
    return undefined
  }
}

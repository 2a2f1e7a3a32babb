import {
  ByronAddress,
  FixedTransaction,
  type TransactionOutput,
  type Value,
} from '@emurgo/cardano-serialization-lib-nodejs'

export interface Output {
  index: number
  address: string
  coin: bigint
  tokens: { unit: string; quantity: string }[]
  scriptHash: string | null
  dataHash: string | null
  inlineDatum: string | null
}
export interface Transaction {
  raw: string
  hash: string
  fee: bigint
  inputs: { hash: string; index: number }[]
  outputs: Output[]
  ttl: string | null
}

function tokensOf(value: Value): Output['tokens'] {
  const all = value.multiasset()
  if (!all) return []
  const policies = all.keys()
  return Array.from({ length: policies.len() }, (_, at) => policies.get(at)).flatMap((policy) => {
    const assets = all.get(policy)
    const names = assets?.keys()
    return Array.from({ length: names?.len() ?? 0 }, (_, at) => names!.get(at)).map((name) => ({
      unit: policy.to_hex() + Buffer.from(name.name()).toString('hex'),
      quantity: assets!.get(name)!.to_str(),
    }))
  })
}

function outputOf(output: TransactionOutput, index: number): Output {
  const address = output.address()
  const script = output.script_ref()
  return {
    index,
    address: ByronAddress.from_address(address)?.to_base58() ?? address.to_bech32(),
    coin: BigInt(output.amount().coin().to_str()),
    tokens: tokensOf(output.amount()),
    scriptHash:
      (script?.native_script()?.hash() ?? script?.plutus_script()?.hash())?.to_hex() ?? null,
    dataHash: output.data_hash()?.to_hex() ?? null,
    inlineDatum: output.plutus_data()?.to_hex() ?? null,
  }
}

/**
 * Parses a transaction.
 * @throws Error if the bytes are not a transaction
 */
export function readTransaction(raw: string): Transaction {
  const fixed = FixedTransaction.from_hex(raw)
  const body = fixed.body()
  const inputs = body.inputs()
  const outputs = body.outputs()
  return {
    raw,
    hash: fixed.transaction_hash().to_hex(),
    fee: BigInt(body.fee().to_str()),
    ttl: body.ttl_bignum()?.to_str() ?? null,
    inputs: Array.from({ length: inputs.len() }, (_, at) => ({
      hash: inputs.get(at).transaction_id().to_hex(),
      index: inputs.get(at).index(),
    })),
    outputs: Array.from({ length: outputs.len() }, (_, at) => outputOf(outputs.get(at), at)),
  }
}

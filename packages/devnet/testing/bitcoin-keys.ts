import { crypto, networks, payments, script, Transaction } from 'bitcoinjs-lib'
import { privateKeyToAccount, sign } from 'viem/accounts'

/**
 * Signs with libraries that the ledger does not use, so that both cannot contain the same error.
 */
export type Key = {
  privateKey: `0x${string}`
  publicKey: Uint8Array
  address: string
  script: Uint8Array
  legacy: string
  legacyScript: Uint8Array
}
export type Spend = {
  txid: string
  vout: number
  value: bigint
  sequence?: number
  legacy?: Transaction
}
export type Output = { script: Uint8Array; value: bigint }

const network = networks.regtest

export function key(seed: number): Key {
  const privateKey = `0x${seed.toString(16).padStart(64, '0')}` as const
  const uncompressed = Buffer.from(privateKeyToAccount(privateKey).publicKey.slice(2), 'hex')
  const publicKey = Buffer.concat([
    Buffer.from([uncompressed[64]! % 2 === 0 ? 2 : 3]),
    uncompressed.subarray(1, 33),
  ])
  const segwit = payments.p2wpkh({ pubkey: publicKey, network })
  const legacy = payments.p2pkh({ pubkey: publicKey, network })
  return {
    privateKey,
    publicKey,
    address: segwit.address!,
    script: segwit.output!,
    legacy: legacy.address!,
    legacyScript: legacy.output!,
  }
}

export type Shape = {
  version?: number
  locktime?: number
  tamper?: boolean
  hashType?: number
  highS?: boolean
}

export async function payment(
  from: Key,
  spends: Spend[],
  outputs: Output[],
  shape: Shape = {},
): Promise<Transaction> {
  const tx = new Transaction()
  tx.version = shape.version ?? 2
  tx.locktime = shape.locktime ?? 0
  for (const { txid, vout, sequence } of spends)
    tx.addInput(Buffer.from(txid, 'hex').reverse(), vout, sequence ?? 0xfffffffd)
  for (const { script: output, value } of outputs) tx.addOutput(output, value)
  const code = payments.p2pkh({ hash: crypto.hash160(from.publicKey) }).output!
  for (const [index, { value, legacy }] of spends.entries()) {
    const hashType = shape.hashType ?? Transaction.SIGHASH_ALL
    const digest = legacy
      ? tx.hashForSignature(index, code, hashType)
      : tx.hashForWitnessV0(index, code, value, hashType)
    const { r, s } = await sign({
      hash: `0x${Buffer.from(digest).toString('hex')}`,
      privateKey: from.privateKey,
    })
    const signature = Buffer.from(
      r.slice(2) + (shape.highS ? ORDER - BigInt(s) : BigInt(s)).toString(16).padStart(64, '0'),
      'hex',
    )
    const encoded = encode(signature, hashType)
    if (shape.tamper) encoded[10]! ^= 1
    if (legacy) tx.setInputScript(index, script.compile([encoded, from.publicKey]))
    else tx.setWitness(index, [encoded, from.publicKey])
  }
  return tx
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

function encode(signature: Buffer, hashType: number): Uint8Array {
  const integer = (bytes: Buffer): Buffer => {
    let start = 0
    while (start < 31 && bytes[start] === 0) start += 1
    const body =
      bytes[start]! & 0x80
        ? Buffer.concat([Buffer.from([0]), bytes.subarray(start)])
        : bytes.subarray(start)
    return Buffer.concat([Buffer.from([2, body.length]), body])
  }
  const body = Buffer.concat([integer(signature.subarray(0, 32)), integer(signature.subarray(32))])
  return Buffer.concat([Buffer.from([0x30, body.length]), body, Buffer.from([hashType])])
}

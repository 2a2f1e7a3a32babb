import type { UtxoParams } from '../types.ts'

/**
 * Weight units of the parts that do not depend on outputs. A signature counts with its longest
 * low-S form.
 */
const P2WPKH_INPUT_WEIGHT = 41 * 4 + 108
const P2PKH_INPUT_WEIGHT = 148 * 4
/** Bitcoin Core's DUST_RELAY_TX_FEE, in satoshi per vbyte. */
const DUST_RATE = 3

function compactSizeBytes(count: number): number {
  if (count < 0xfd) return 1
  return count <= 0xffff ? 3 : 5
}

/**
 * Returns the virtual size in vbytes of a signed transaction (BIP141), never below the actual one.
 * @param outputScriptBytes length of each output's script
 */
export function virtualSize(
  params: UtxoParams,
  inputs: number,
  outputScriptBytes: readonly number[],
): number {
  const segwit = params.script === 'p2wpkh'
  const outputs = outputScriptBytes.reduce(
    (sum, bytes) => sum + 8 + compactSizeBytes(bytes) + bytes,
    0,
  )
  const base = 8 + compactSizeBytes(inputs) + compactSizeBytes(outputScriptBytes.length) + outputs
  const weight =
    base * 4 + (segwit ? 2 + inputs * P2WPKH_INPUT_WEIGHT : inputs * P2PKH_INPUT_WEIGHT)
  return Math.ceil(weight / 4)
}

/**
 * Returns the smallest value in satoshi that nodes relay for an output script: the cost of making
 * and spending it at the network's dust rate (usually 3 sat/vB), as Bitcoin Core's GetDustThreshold
 * computes it, or the network's own higher minimum.
 */
export function dustLimit(params: UtxoParams, script: Uint8Array): bigint {
  const witness =
    script.length >= 4 &&
    script.length <= 42 &&
    (script[0] === 0 || ((script[0] as number) >= 0x51 && (script[0] as number) <= 0x60)) &&
    script[1] === script.length - 2
  const output = 8 + compactSizeBytes(script.length) + script.length
  const limit = (params.dust_rate ?? DUST_RATE) * (output + (witness ? 67 : 148))
  return BigInt(Math.max(limit, params.dust > 10_000 ? params.dust : 0))
}

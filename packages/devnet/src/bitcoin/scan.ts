import { RpcError } from '../errors.ts'
import { addressOf, scriptOf } from './address.ts'
import type { BitcoinChain } from './chain.ts'
import { descriptorChecksum } from './descriptor.ts'
import { hash160 } from './encoding.ts'
import { btc } from './json.ts'
import { INVALID_ADDRESS_OR_KEY, INVALID_PARAMETER, type Params } from './parameters.ts'

const HEX = /^[0-9a-f]*$/i
const KEY = /^0[23][0-9a-f]{64}$/i

const bad = (message: string) => new RpcError(INVALID_ADDRESS_OR_KEY, message)

/**
 * Returns the scripts of one output descriptor: addr, raw, and those of one public key. Ranges and
 * multisignatures are not supported.
 */
function scriptsOf({ network }: BitcoinChain, text: string): Buffer[] {
  const [body = '', checksum] = text.split('#')
  if (checksum !== undefined && checksum !== descriptorChecksum(body))
    throw bad(
      `Provided checksum '${checksum}' does not match computed checksum '${descriptorChecksum(body)}'`,
    )
  const [, name = '', argument = ''] = /^([a-z]+)\(([^()]*)\)$/.exec(body) ?? []
  if (name === 'addr') {
    const script = scriptOf(argument, network)
    if (!Buffer.isBuffer(script)) throw bad('Address is not valid')
    return [script]
  }
  if (name === 'raw') {
    if (argument === '' || argument.length % 2 !== 0 || !HEX.test(argument))
      throw bad('Raw script is not hex')
    return [Buffer.from(argument, 'hex')]
  }
  const key = Buffer.from(argument, 'hex')
  const scripts: Record<string, () => Buffer> = {
    pk: () => Buffer.concat([Buffer.from([key.length]), key, Buffer.from([0xac])]),
    pkh: () =>
      Buffer.concat([Buffer.from('76a914', 'hex'), hash160(key), Buffer.from('88ac', 'hex')]),
    ...(network.segwit ? { wpkh: () => Buffer.concat([Buffer.from([0, 20]), hash160(key)]) } : {}),
  }
  const wanted =
    name === 'combo' ? Object.values(scripts) : Object.hasOwn(scripts, name) ? [scripts[name]!] : []
  if (wanted.length === 0) throw bad(`'${body}' is not a valid descriptor function`)
  if (!KEY.test(argument)) throw bad(`${name}(): key '${argument}' is not valid`)
  return wanted.map((script) => script())
}

/**
 * `scantxoutset`: returns the unspent outputs in blocks that match descriptors. The scan ends
 * before the response is sent, so it cannot be aborted.
 */
export function scanTxOutSet(chain: BitcoinChain, [action, objects]: Params): unknown {
  if (action === 'status') return null
  if (action === 'abort') return false
  if (action !== 'start')
    throw new RpcError(INVALID_PARAMETER, `Invalid action '${String(action)}'`)
  if (!Array.isArray(objects))
    throw new RpcError(-1, 'scanobjects argument is required for the start action')
  const wanted = new Set(
    objects.flatMap((each: unknown) => {
      const text = typeof each === 'string' ? each : (each as { desc?: unknown } | null)?.desc
      if (typeof text !== 'string')
        throw new RpcError(
          INVALID_PARAMETER,
          'Scan object needs to be either a string or an object',
        )
      return scriptsOf(chain, text).map((script) => script.toString('hex'))
    }),
  )
  const { coins, tip, blocks } = chain.ledger
  const coinsFound = [...coins].filter(([, { script }]) => wanted.has(script.toString('hex')))
  return {
    success: true,
    txouts: coins.size,
    height: tip.height,
    bestblock: tip.hash,
    unspents: coinsFound.map(([outpoint, { value, script, height, coinbase }]) => {
      const [txid, vout] = outpoint.split(':')
      const address = addressOf(script, chain.network)
      const body = address === undefined ? `raw(${script.toString('hex')})` : `addr(${address})`
      return {
        txid,
        vout: Number(vout),
        scriptPubKey: script.toString('hex'),
        desc: `${body}#${descriptorChecksum(body)}`,
        amount: btc(value),
        coinbase,
        height,
        blockhash: blocks[height]?.hash,
        confirmations: tip.height - height + 1,
      }
    }),
    total_amount: btc(coinsFound.reduce((sum, [, { value }]) => sum + value, 0n)),
  }
}

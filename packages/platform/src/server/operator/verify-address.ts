import { existsSync, readFileSync } from 'node:fs'
import { OperatorError } from './command.ts'

const INDEX_MAX_DEFAULT = 1000
const INDEX_MAX = 10_000_000

const USAGE = 'verify-address ASSET ADDRESS --keys FILE --trust FILE [--path S/C/I] [--max-index N]'
interface Outcome {
  result: Record<string, unknown>
  text: string
  exitCode: number
}
type Values = Record<string, string | boolean | undefined>

function readJson(values: Values, option: string): unknown {
  const file = values[option]
  if (typeof file !== 'string' || file === '')
    throw new OperatorError(`--${option} is required: a file`)
  if (!existsSync(file)) throw new OperatorError(`--${option}: the file ${file} does not exist`)
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw new OperatorError(`--${option}: ${file} is not JSON`)
  }
}

function readPath(text: string): number[] {
  if (!/^\d{1,10}\/\d{1,10}\/\d{1,10}$/.test(text))
    throw new OperatorError('--path: must be SUB-ACCOUNT/CHAIN/INDEX, such as 1/0/7')
  return text.split('/').map(Number)
}

/**
 * Verifies a deposit address without the platform and without a network connection, by the same
 * code as the client: from a saved response of GET /dac/v1/keys (also as printed by `custody
 * request … --json`) and the trust file that the operator handed out.
 */
export async function verifyAddressCommand(words: string[], values: Values): Promise<Outcome> {
  const [asset, address] = words
  if (!asset || !address) throw new OperatorError(`Usage: custody ${USAGE}`)
  const [saved, trust] = [readJson(values, 'keys'), readJson(values, 'trust')]
  const path = typeof values['path'] === 'string' ? readPath(values['path']) : undefined
  const indexMax =
    values['max-index'] === undefined ? INDEX_MAX_DEFAULT : Number(values['max-index'])
  if (!Number.isInteger(indexMax) || indexMax < 0 || indexMax > INDEX_MAX) {
    throw new OperatorError(`--max-index: must be a whole number up to ${INDEX_MAX}`)
  }
  const { VerificationError, verifyAddress } = await import('@custody/client/verify-address')
  try {
    const proof = await verifyAddress(
      trust,
      (saved as { body?: unknown } | null)?.body ?? saved,
      asset,
      address,
      { path, indexMax },
    )
    const owner = `${proof.workspace} / ${proof.sub_account}`
    const certified = `its key is certified by signer nodes ${proof.certified_by.join(', ')}`
    const text = `${address} is the ${asset} address ${proof.path.join('/')} of ${owner}; ${certified}`
    return { result: { valid: true, ...proof }, text, exitCode: 0 }
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error
    const { code, message, expected, actual } = error
    const result = {
      valid: false,
      asset,
      address,
      code,
      reason: message,
      expected: expected ?? null,
      actual: actual ?? null,
    }
    return { result, text: message, exitCode: 1 }
  }
}

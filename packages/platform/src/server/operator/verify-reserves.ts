import { existsSync, readFileSync } from 'node:fs'
import { formatAmount } from '@custody/chains'
import { OperatorError } from './command.ts'

interface Outcome {
  result: Record<string, unknown>
  text: string | string[]
  exitCode: number
}
type Values = Record<string, string | boolean | undefined>

function readText(file: string | boolean | undefined, option: string): string {
  if (typeof file !== 'string' || file === '')
    throw new OperatorError(`${option} is required: a file`)
  if (!existsSync(file)) throw new OperatorError(`${option}: the file ${file} does not exist`)
  return readFileSync(file, 'utf8')
}

/** Reads a JSON file, also in the form that `custody request … --json` prints. */
function readJson(file: string | boolean | undefined, option: string): unknown {
  try {
    const value = JSON.parse(readText(file, option)) as { status?: unknown; body?: unknown } | null
    return value?.status !== undefined && value.body !== undefined ? value.body : value
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${option}: ${String(file)} is not JSON`)
  }
}

/**
 * Verifies a statement of reserves, and its liability to a sub-account, without the platform and
 * without a network connection, by the same code as the client. A statement that owes more than it
 * holds is still valid: the shortfall is printed, and the exit code is 0.
 */
export async function verifyReservesCommand(words: string[], values: Values): Promise<Outcome> {
  const [published, trust] = [
    readJson(values['statement'], '--statement'),
    readJson(values['trust'], '--trust'),
  ]
  const proof = words[0] === undefined ? undefined : readJson(words[0], 'FILE')
  const holdings =
    values['holdings'] === undefined ? undefined : readText(values['holdings'], '--holdings')
  const { VerificationError, verifyReserves } = await import('@custody/client/verify-reserves')
  try {
    const match = await verifyReserves({ published, proof, trust, holdings } as Parameters<
      typeof verifyReserves
    >[0])
    const { statement, ...rest } = match
    const owed = match.proven.map(
      ({ asset, decimals, balance }) => `${formatAmount(BigInt(balance), decimals)} ${asset}`,
    )
    const lines = [
      `the statement ${statement.id} of ${statement.time} is signed by signer nodes ${(match.signed_by ?? []).join(', ')}`,
      `SHA-256 ${match.hash}`,
      ...(proof === undefined
        ? []
        : [
            owed.length > 0
              ? `it includes the balance ${owed.join(', ')} of this proof's sub-account in the liabilities`
              : "it includes NO balance of this proof's sub-account",
          ]),
      ...(match.addresses === null
        ? []
        : [
            `${match.addresses} addresses are derived from certified keys, and their balances add up to the reserves`,
          ]),
      ...(match.short.length > 0
        ? [`ACCORDING TO THE STATEMENT, liabilities exceed reserves in ${match.short.join(', ')}`]
        : []),
    ]
    return {
      result: { valid: true, id: statement.id, time: statement.time, ...rest },
      text: lines,
      exitCode: 0,
    }
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error
    const { code, message, expected, actual } = error
    const result = {
      valid: false,
      code,
      reason: message,
      expected: expected ?? null,
      actual: actual ?? null,
    }
    return { result, text: message, exitCode: 1 }
  }
}

import { WORKSPACE_NAME } from '../../custody/prepaid-fee/ensure-workspace.ts'
import { OperatorError } from './command.ts'

/**
 * Reads a name that an operator entered.
 * @throws OperatorError that names the option
 */
export function readName(value: unknown, option: string): string {
  if (typeof value !== 'string' || !WORKSPACE_NAME.test(value)) {
    throw new OperatorError(`--${option}: must be 1 to 100 letters, digits, spaces or . _ @ -`)
  }
  return value
}

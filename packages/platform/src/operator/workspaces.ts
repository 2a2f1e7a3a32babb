import { OperatorError } from './command.ts'

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,99}$/u

/** A name that an operator gave. @throws OperatorError that names the option */
export function readName(value: unknown, option: string): string {
  if (typeof value !== 'string' || !NAME.test(value)) {
    throw new OperatorError(`--${option}: 1 to 100 letters, digits, spaces or . _ @ - are needed`)
  }
  return value
}

import { TerminalError } from '@custody/chains/terminal'
import type { Services } from '../../core/engine/services.ts'

/** A wrong option or an impossible request. The message is shown to the operator. */
export class OperatorError extends TerminalError {
  constructor(message: string, ...lines: readonly string[]) {
    super(message, ...lines)
    this.name = 'OperatorError'
  }
}

/** Returns an option as entered; null if it is missing. */
export const argument = (input: Record<string, unknown>, name: string): string | null =>
  input[name] === undefined || input[name] === null ? null : String(input[name])

export type Command = (
  services: Services,
  input: Record<string, unknown>,
) => Promise<Record<string, unknown>>

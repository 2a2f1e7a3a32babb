import { TerminalError } from '@custody/chains/terminal'

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

/**
 * A command of the operator interface. `Services`: what it needs of the platform.
 */
export type Command<Services> = (
  services: Services,
  input: Record<string, unknown>,
) => Promise<Record<string, unknown>>

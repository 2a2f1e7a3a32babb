import { TerminalError } from '@custody/chains/terminal'
import type { Services } from '../engine/services.ts'

/** A wrong option or an impossible wish; the message is for the operator. */
export class OperatorError extends TerminalError {
  constructor(message: string, ...lines: readonly string[]) {
    super(message, ...lines)
    this.name = 'OperatorError'
  }
}

/** An option as it was typed; null where it was not. */
export const given = (input: Record<string, unknown>, name: string): string | null =>
  input[name] === undefined || input[name] === null ? null : String(input[name])

export type Command = (
  services: Services,
  input: Record<string, unknown>,
) => Promise<Record<string, unknown>>

import type { Services } from '../engine/services.ts'

/** A wrong option or an impossible wish; the message is for the operator. */
export class OperatorError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'OperatorError'
  }
}

export type Command = (services: Services, input: Record<string, unknown>) => Promise<Record<string, unknown>>

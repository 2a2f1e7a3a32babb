import { TerminalError } from '@custody/chains/terminal'

/** A wrong option, or something that must not be signed. The message is shown to the person. */
export class ApproverError extends TerminalError {
  /** Stable code, by which the page and tests tell errors apart. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'ApproverError'
    this.code = code
  }
}

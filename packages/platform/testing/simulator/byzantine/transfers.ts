import type { SignedTransaction, UnsignedTransaction } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import type { Code, Place } from './wallets.ts'

/** States of a transfer, as in `custody/transactions/kind.ts`; gas funding and screening are left out. */
export type State =
  | 'QUEUED'
  | 'APPROVAL'
  | 'SIGNING'
  | 'SIGNED'
  | 'CONFIRMING'
  | 'VOIDING'
  | 'CONFIRMED'
  | 'FAILED'
  | 'CANCELLED'

/** A chain transaction of a transfer, as in the table `chain_transactions`. */
export interface Attempt extends Place {
  unsigned: UnsignedTransaction
  state: 'BUILT' | 'SIGNED' | 'EXPIRED' | 'VOID'
  /** Whether it was submitted to a signer node. */
  isShown: boolean
  /** When it was submitted first. */
  submittedAtMs: number
  isCancellation: boolean
  signed: SignedTransaction | null
}

/** A request that a caller signs during a run, with the cancellation that may follow. */
export interface Planned {
  atMs: number
  code: Code
  amount: bigint
  request: SignedRequest
  /** Null: the caller does not cancel it. */
  cancel: { atMs: number; request: SignedRequest } | null
}

export class Transfer {
  readonly name: string
  readonly planned: Planned
  state: State = 'QUEUED'
  readonly attempts: Attempt[] = []
  /** A worker processes it, or its payment is signed together with another one. */
  isLeased = false
  isCancelled = false
  /** Why the platform ended it. */
  reason: string | null = null
  /** Steps since the state changed. */
  retries = 0
  /** Message of the last failure. */
  lastError = ''

  constructor(name: string, planned: Planned) {
    this.name = name
    this.planned = planned
  }

  get code(): Code {
    return this.planned.code
  }
  get hasEnded(): boolean {
    return ['CONFIRMED', 'FAILED', 'CANCELLED'].includes(this.state)
  }
  get built(): Attempt | undefined {
    return this.attempts.find(({ state }) => state === 'BUILT')
  }
  get signed(): Attempt[] {
    return this.attempts.filter(({ state }) => state === 'SIGNED')
  }
}

import { ChainError, NoFeeEstimate } from '@custody/chains'
import { z } from 'zod'
import { MESSAGE_MAX, TIME_MAX, WORD_MAX } from '../bounds.ts'
import { NodeRefused, NodeUnavailable } from '../signing/nodes.ts'

/**
 * Reasons for waiting, as the API returns them. The sentences are fixed, so that they contain no
 * text of an endpoint, provider or node and no internal details. The row's `last_error` has the
 * details, for the operator only.
 */
const REASONS = {
  NETWORK_FEES:
    'The network fee is above the maximum that the gas tank pays. The transfer continues when the fee falls.',
  GAS_TANK: 'The gas tank sends the network fee to the source address first.',
  COINS:
    'The coins of the wallet that are free now do not cover the transfer, or it needs too many of them. It continues when change or a larger coin arrives, or a frozen coin is unfrozen.',
  EARLIER_TRANSFER: 'An earlier transfer has to be processed first.',
  SCREENING: 'The screening provider has not responded yet. The transfer continues when it does.',
  AML_HELD:
    'Screening holds it until the frozen addresses are unfrozen or the operator releases it.',
  APPROVAL: 'The policy of the workspace requires approvals of people that are missing.',
  POLICY:
    'The policy of the workspace does not allow it now, because a time window is full or signing is stopped. It is tried again.',
  SIGNER_NODES: 'Two signer nodes must respond, and fewer do. The step is retried.',
  ENDPOINT:
    'The endpoint of the network cannot be reached, could not process a request, or is behind the chain. The step is retried.',
  FEE_ESTIMATE:
    'The endpoint of the network has no estimate of fee rates, as after its start. The step is retried. A transfer with a fee_rate of its own needs no estimate.',
  CHAIN_REFUSAL:
    'The chain would reject the transfer now. It is checked again, and fails if the chain continues to reject it.',
  FEE_TOO_LOW:
    'The network does not accept the fee of the transaction now. It is sent again, with a higher fee if the request allows one. The caller can replace it with a higher fee.',
  REORGANISED:
    'A reorganisation of the chain removed the payment that it spends. The same transaction is sent again until the payment returns.',
  BELOW_ZERO:
    'The balance of the wallet is below zero, because a reorganisation removed a deposit that it has spent. The transfer continues when the wallet is filled.',
  FINAL_BLOCK:
    'The endpoint of the network returns another block than one that was final. The step is retried when it is known which one is right.',
  SWEEP_COST: 'The amount does not justify the network fee of a sweep yet.',
  INTERNAL: 'The platform could not complete a step. It is retried.',
} as const

export type WaitCode = keyof typeof REASONS
export const WAIT_CODES = Object.keys(REASONS) as WaitCode[]

/**
 * The reason as stored with the row. `since`: when the row started to wait for this code. `cause`:
 * what the transaction that it waits for is waiting for itself.
 */
export interface Waiting {
  code: WaitCode
  reason: string
  since: string
  cause?: WaitCode
}

export const waitingShape = z
  .object({
    code: z
      .string()
      .max(WORD_MAX)
      .meta({
        description: `Reason code. Currently ${WAIT_CODES.join(', ')}; further codes may be added`,
      }),
    reason: z.string().max(MESSAGE_MAX).meta({ description: 'A sentence for people; may change' }),
    since: z
      .string()
      .max(TIME_MAX)
      .meta({ description: 'Time since when it has been waiting for this reason' }),
    cause: z.string().max(WORD_MAX).optional().meta({
      description:
        'With `GAS_TANK`: reason code of the transaction that brings the fee, if that one waits itself',
    }),
  })
  .meta({ id: 'Waiting' })

/** Returns the sentences for a reason, and for the cause of it. */
export const reasonFor = (code: WaitCode, cause: WaitCode | null = null): string =>
  cause === null ? REASONS[code] : `${REASONS[code]} That transaction waits: ${REASONS[cause]}`

const SIGNING_STATES: ReadonlySet<string> = new Set(['SIGNING', 'VOIDING'])

/** Returns the wait code for an error of a step. */
export function codeOf(error: unknown, state: string): WaitCode {
  if (error instanceof NodeRefused || error instanceof NodeUnavailable) return 'SIGNER_NODES'
  if (error instanceof NoFeeEstimate) return 'FEE_ESTIMATE'
  if (error instanceof ChainError) return error.code.startsWith('RPC_') ? 'ENDPOINT' : 'INTERNAL'
  return SIGNING_STATES.has(state) ? 'SIGNER_NODES' : 'INTERNAL'
}

import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { MESSAGE_MAX } from '../../core/bounds.ts'
import { needShape } from '../approvals/judgement.ts'
import { policyRef } from './shapes.ts'

const TRIED_MAX = 20
const WINDOWS_MAX = 100

const triedShape = z
  .object({
    rule: z.string().max(64),
    fits: z.boolean().meta({
      description: 'The rule applies: an `allow` allows the request, any other rule restricts it',
    }),
    why: z
      .string()
      .max(2000)
      .nullable()
      .meta({ description: 'Why the rule does not fit, or what it adds' }),
  })
  .meta({
    id: 'PolicyTried',
    examples: [{ rule: 'small', fits: false, why: 'amount: 0.7 ETH is above 0.5' }],
  })

const windowAmount = z
  .string()
  .max(100)
  .meta({ examples: ['1.5'] })
const windowShape = z
  .object({
    rule: z.string().max(64),
    name: z.string().max(64),
    asset: z
      .string()
      .max(64)
      .nullable()
      .meta({ description: 'null: the window counts requests, not amounts' }),
    share: z.boolean().meta({
      description: 'true: the part of one sub-account in a window of the whole workspace',
    }),
    used: windowAmount.meta({ description: 'Without this request, in the unit of the asset' }),
    max: windowAmount.nullable().meta({
      description: 'null: the window does not name the asset, so the request does not fit',
    }),
    fits: z.boolean(),
    frees_at: z
      .string()
      .max(30)
      .nullable()
      .meta({ description: 'Time from which the request would fit; null: now, or never' }),
  })
  .meta({ id: 'PolicyWindow' })

const refusalShape = z
  .object({
    code: z.string().max(64),
    message: z.string().max(4000),
    frees_at: z.string().max(30).nullable(),
  })
  .nullable()
  .meta({
    description: 'Why the signer nodes would refuse a signature now; null: they would not',
  })

/** Response of the endpoint. */
export const evaluationShape = z.object({
  effect: z.enum(['allow', 'approve', 'deny', 'none']).meta({
    description:
      '`approve`: the rule `via` requires the approvals in `needs`. `none`: the workspace has no policy, so nothing limits the request',
  }),
  via: z
    .string()
    .max(64)
    .nullable()
    .meta({ description: 'Rule by which the request passes', examples: ['small'] }),
  needs: z.array(needShape).max(LIMITS.approvalGroups),
  tried: z.array(triedShape).max(TRIED_MAX),
  windows: z.array(windowShape).max(WINDOWS_MAX),
  refusal: refusalShape,
  policy: policyRef.nullable(),
  by: z
    .array(z.string().max(10))
    .max(3)
    .meta({ description: 'Signer nodes that evaluated it', examples: [['node 1', 'node 3']] }),
})
export type Evaluation = z.output<typeof evaluationShape>

const seconds = z.int().min(0).nullable()
const judged = z.object({
  policy: policyRef,
  effect: z.enum(['allow', 'approve', 'deny']),
  via: z.string().max(64).nullable(),
  needs: z.array(needShape).max(LIMITS.approvalGroups),
  tried: z.array(z.object({ ...triedShape.shape, why: z.string().nullable() })).max(TRIED_MAX),
  windows: z.array(windowShape.extend({ frees_at: seconds })).max(WINDOWS_MAX),
  refusal: z
    .object({ code: z.string().max(64), message: z.string().max(MESSAGE_MAX), frees_at: seconds })
    .nullable(),
})
/** Response of a node to `POST /policy/evaluate` (packages/signer/README.md). */
export const nodeEvaluation = z.union([judged, z.object({ policy: z.null() })])
export type NodeEvaluation = z.output<typeof nodeEvaluation>
type Judged = z.output<typeof judged>

export const isJudged = (value: NodeEvaluation): value is Judged => value.policy !== null

/** Name under which responses of nodes agree. */
export const keyOfEvaluation = (value: NodeEvaluation): string =>
  isJudged(value)
    ? JSON.stringify([value.policy.hash, value.effect, value.via, value.refusal?.code])
    : ''

const EFFECTS = ['allow', 'approve', 'deny']
/** The stricter of two responses under one document. */
export const stricter = <T extends { value: Judged }>(a: T, b: T): T =>
  EFFECTS.indexOf(b.value.effect) > EFFECTS.indexOf(a.value.effect) ? b : a

const timeOf = (at_s: number | null): string | null =>
  at_s === null ? null : new Date(at_s * 1000).toISOString()

/** Converts a response of nodes to that of the API. */
export function presentEvaluation(value: NodeEvaluation, nodes: readonly number[]): Evaluation {
  const by = nodes.map((node) => `node ${node}`)
  if (!isJudged(value)) {
    const none = { via: null, needs: [], tried: [], windows: [], refusal: null, policy: null }
    return { effect: 'none', ...none, by }
  }
  const { policy, effect, via, needs, tried, windows, refusal } = value
  return {
    effect,
    via,
    needs,
    tried: tried.map(({ rule, fits, why }) => ({ rule, fits, why: why?.slice(0, 2000) ?? null })),
    windows: windows.map((each) => ({ ...each, frees_at: timeOf(each.frees_at) })),
    refusal: refusal && {
      code: refusal.code,
      message: refusal.message.slice(0, 4000),
      frees_at: timeOf(refusal.frees_at),
    },
    policy,
    by,
  }
}

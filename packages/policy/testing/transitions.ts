import type { Known } from '../src/governance/documents.ts'
import { compile } from '../src/evaluation/compile.ts'
import {
  judgeChange,
  judgeReinstatement,
  type Proposal,
  type Witnesses,
} from '../src/governance/documents.ts'
import { withEffect, type Effect } from '../src/governance/effects.ts'
import type { Governance, Present } from '../src/governance/governance.ts'
import { judgeConfirmation, judgeResume, judgeStatement } from '../src/governance/statements.ts'
import type { Policy } from '../src/evaluation/compile.ts'
import type { SignedStatement } from '../src/statements/verify.ts'
import { NOW } from './documents.ts'

/** Each of these functions judges an item and returns the state after its effect. */
const after = (
  governance: Governance,
  effect: Effect | null,
  now_s: number,
  next: Policy | null = null,
): Governance => (effect === null ? governance : withEffect(governance, effect, next, now_s))

export function propose(
  governance: Governance,
  proposal: Proposal,
  context: Known,
  present: Present,
  witnesses: Witnesses = null,
): Governance {
  const effect = judgeChange(governance, proposal, context, present, witnesses)
  const next = effect && compile(proposal.document, context.registry)
  return after(governance, effect, present.now_s, next)
}

export const reinstate = (
  governance: Governance,
  proposal: Proposal,
  context: Known,
  present: Present,
): Governance =>
  after(
    governance,
    judgeReinstatement(governance, proposal, context, present),
    present.now_s,
    compile(proposal.document, context.registry),
  )

const statement = (governance: Governance, signed: SignedStatement, present: Present): Governance =>
  after(governance, judgeStatement(governance, signed, present), present.now_s)

export const veto = statement
export const stop = statement
export const suspend = statement
export const revoke = statement

export const resume = (
  governance: Governance,
  stopped: SignedStatement,
  approvals: readonly SignedStatement[],
  present: Present,
  earlier: readonly Policy[] = [],
): Governance =>
  after(
    governance,
    judgeResume(governance, { stopped, approvals }, present, earlier),
    present.now_s,
  )

export const confirm = (governance: Governance, hash: string, node: number): Governance =>
  after(governance, judgeConfirmation(governance, hash, node), NOW)

/**
 * The policy language: documents, evaluation, windows, approvals and statements. Pure: no input or
 * output, no clock, nothing that only Node has. It runs in signer nodes, the platform, browsers and
 * the SDK.
 */
export * from './act.ts'
export { formatUnits, parseUnits } from './amounts.ts'
export * from './error.ts'
export * from './facts.ts'
export * from './keys.ts'
export { LIMITS } from './limits.ts'
export type * from './registry.ts'
export type * from './document/people.ts'
export { name as personName } from './document/fields.ts'
export { ACTIONS, type Action, type Rule, type Window } from './document/rules.ts'
export { documentJsonSchema } from './document/json-schema.ts'
export { nodesHash } from './document/nodes-hash.ts'
export { canonicalText, checkDocument, documentHash, readDocument } from './document/read.ts'
export type { PolicyDocument } from './document/shape.ts'
export * from './evaluation/approvals.ts'
export { compile, type Need, type Policy } from './evaluation/compile.ts'
export * from './evaluation/evaluate.ts'
export * from './evaluation/prepare.ts'
export type { WindowContext, WindowState } from './evaluation/measure.ts'
export {
  combineCharges,
  combineUses,
  leavingAge,
  limitsOf,
  readSumKey,
  readUses,
  sumOfUses,
  type Charge,
  type CompiledWindow,
  type SumKey,
  type Use,
  type WindowSum,
} from './evaluation/windows.ts'
export * from './statements/carried.ts'
export * from './statements/operator-input.ts'
export * from './statements/policy-file.ts'
export * from './statements/quorum.ts'
export * from './statements/shapes.ts'
export * from './statements/verify.ts'
export { assertion, type Assertion, type Passkey } from './statements/webauthn.ts'
export * from './governance/governance.ts'
export { atTime, firstInForce, withEffect, type Effect } from './governance/effects.ts'
export {
  actsFrom,
  advance,
  approvedAt,
  install,
  judgeChange,
  judgeReinstatement,
  pendingEffect,
  withPolicy,
  type Place,
  type Proposal,
  type ProvenDocument,
  type Witnesses,
} from './governance/documents.ts'
export {
  isRemoved,
  judgeConfirmation,
  judgeResume,
  judgeStatement,
} from './governance/statements.ts'
export { governanceSentences } from './sentences/governance-sentence.ts'
export { visible } from './sentences/words.ts'
export { ruleSentence } from './sentences/rule-sentence.ts'
export * from './sentences/statement-sentence.ts'
export { quote } from './sentences/words.ts'
export * from './analysis/diff.ts'
export { lint } from './analysis/lint.ts'
export type { Finding, LintContext } from './analysis/finding.ts'
export * from './analysis/simulate.ts'

import { sign } from 'node:crypto'
import { factsOf } from '../src/facts.ts'
import type { Policy } from '../src/evaluation/compile.ts'
import { statementBytes, type Statement } from '../src/statements/shapes.ts'
import type { SignedStatement } from '../src/statements/verify.ts'
import { actWith, NOW, type TestKey } from './documents.ts'

/** Signs a statement with node:crypto, which the package does not use. */
export function signWith({ privateKey }: TestKey, statement: Statement): SignedStatement {
  const bytes = statementBytes(statement)
  const signature =
    privateKey.asymmetricKeyType === 'ec'
      ? sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
      : sign(null, bytes, privateKey)
  return { statement, signature: signature.toString('base64') }
}

/** Returns one valid statement of each kind, by `alice` with her key `k1`. */
export function statementsOf(policy: Policy): Record<Statement['kind'], Statement> {
  const { document, hash, registry } = policy
  const { mode, workspace, nodes, number } = document
  const own = { v: 1 as const, mode, workspace, nodes, by: 'alice', key: 'k1' }
  const timed = { ...own, at: NOW - 5, expires: NOW + 3_600 }
  const policyRef = { number, hash }
  const next = { number: number + 1, hash: 'cd'.repeat(32) }
  return {
    approval: {
      kind: 'approval',
      ...timed,
      policy: policyRef,
      action: 'transfer',
      id: actWith().id,
      subject: actWith().subject,
      facts: factsOf(actWith(), registry),
      decision: 'approve',
    },
    possession: { kind: 'possession', ...own, policy: policyRef },
    change: { kind: 'change', ...timed, policy: policyRef, next, acts_at: NOW + 90_000 },
    veto: { kind: 'veto', ...timed, policy: policyRef, next },
    stop: { kind: 'stop', ...timed, sub_account: null, reason: 'A key was stolen' },
    resume: { kind: 'resume', ...timed, policy: policyRef, stop: '12'.repeat(32) },
    suspend: {
      kind: 'suspend',
      ...timed,
      target: { person: 'bob', key: 'k1' },
      reason: 'The laptop is lost',
    },
    revoke: { kind: 'revoke', ...timed, target: { person: 'alice', key: 'k1' } },
  }
}

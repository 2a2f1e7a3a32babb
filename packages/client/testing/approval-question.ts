// A transfer of 0.6 ETH that waits for approvals by real keys, and its verification.
import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { checkDocument, type PolicyDocument } from '@custody/policy'
import { allow, documentWith, keyOf } from '../../policy/testing/documents.ts'
import { signWith } from '../../policy/testing/statements.ts'
import { ApprovalError, verifyApproval, type ApprovalQuestion } from '../src/approvals/approvals.ts'
import {
  decisionStatement,
  placeOf,
  type DetailedApproval,
  type GivenDecision,
} from '../src/approvals/parts.ts'
import type { Trust } from '../src/index.ts'
import { approvalWith, type FixtureOptions } from './approval-fixture.ts'

export const NOW_S = 1_900_000_000
export const API_KEY = 'api-alice'
export const PAYEE = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
export const OTHER_PAYEE = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }) as string
export const caller = rsa()
export const attacker = rsa()
const callers = { [API_KEY]: pemOf(caller.publicKey) }

export const trustOf = (fields: Partial<Trust> = {}): Trust => ({
  version: 1,
  network: 'mainnet',
  workspace: 'acme',
  sub_account: 'main',
  sub_account_index: 1,
  nodes: [1, 2, 3].map((node) => ({
    node,
    identity: pemOf(generateKeyPairSync('ed25519').publicKey),
  })),
  ...fields,
})
export const trust = trustOf()
export const place = await placeOf(trust)

export const LARGE = {
  ...allow('large'),
  match: { action: ['transfer'], assets: ['ETH'], to: 'any' },
  amount: { max: { ETH: '10' } },
  approvals: [
    { group: 'treasury', k: 2 },
    { group: 'compliance', k: 1 },
  ],
}
export const documentOf = (fields: Parameters<typeof documentWith>[1] = {}): PolicyDocument =>
  checkDocument(documentWith([LARGE], { nodes: place.nodes, ...fields }))
export const document = documentOf()
export const NEEDS = [
  { group: 'compliance', k: 1, have: 0 },
  { group: 'treasury', k: 2, have: 0 },
]

export const approvalOf = async (
  fields: Partial<FixtureOptions> = {},
): Promise<DetailedApproval> => ({
  ...(await approvalWith({
    document,
    registry: place.registry,
    apiKey: API_KEY,
    privateKey: caller.privateKey,
    now_s: NOW_S,
    payee: PAYEE,
    ...fields,
  })),
  needs: NEEDS,
})
export const approval = await approvalOf()

/** Signs a decision about a transfer as a person does. */
export function decided(
  of: DetailedApproval,
  by: string,
  fields: Partial<Pick<GivenDecision, 'decision' | 'at' | 'expires'>> = {},
): GivenDecision {
  const signer = {
    by,
    key: 'k1',
    decision: 'approve' as const,
    at: NOW_S - 5,
    expires: NOW_S + 3600,
    ...fields,
  }
  const { v: _, action, facts, ...base } = of.statement
  const payment = { base, action, facts } as Parameters<typeof decisionStatement>[0]
  const { signature } = signWith(keyOf(by), decisionStatement(payment, signer))
  return { ...signer, signature }
}

export const verify = (of: unknown, more: Partial<ApprovalQuestion> = {}) =>
  verifyApproval({
    approval: of,
    trust,
    documents: [document],
    callers,
    id: approval.id,
    now_s: NOW_S,
    ...more,
  })

export const refuses = (
  code: string,
  message: RegExp,
  of: unknown,
  more: Partial<ApprovalQuestion> = {},
): Promise<void> =>
  assert.rejects(verify(of, more), (error) => {
    assert.ok(error instanceof ApprovalError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    return true
  })

export const withStatement = (fields: object, of = approval): DetailedApproval => ({
  ...of,
  statement: { ...of.statement, ...fields },
})
export const withFacts = (fields: object) =>
  withStatement({ facts: { ...(approval.statement.facts as object), ...fields } })
export const withHave = (...have: GivenDecision[]): DetailedApproval => ({ ...approval, have })

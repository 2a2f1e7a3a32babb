import { LIMITS, readSigned, statementHash, type Statement } from '@custody/policy'
import { OperatorError } from '../command.ts'
import { blockedKeysOf } from '../../../custody/policies/policy-in-force.ts'
import { localSigners } from '../connect.ts'
import { nodesWith, presentItem, requireInForce, type PolicyView } from '../policy/nodes.ts'
import { compiled, faultOf, nowS, signerOf, signStatement } from '../policy/statements.ts'
import { need, type Outcome, type Run, type Values } from './typed.ts'

const HASH = /^[0-9a-f]{64}$/
const nodesText = (nodes: readonly number[]): string =>
  nodes.length === 0 ? 'no signer node' : nodes.map((node) => `signer ${node}`).join(', ')

/** What a statement contains besides its signer, and how a node shows that it has it. */
interface Draft {
  fields: (inForce: { number: number; hash: string }) => object
  isRecorded: (view: PolicyView) => boolean
  /** Of the result, and of its sentence. */
  result: Record<string, unknown>
  textOf: (nodes: string) => string
}

/** Signs a statement and presents it to all nodes of this home. */
async function signAndPresent(home: string, values: Values, draft: Draft): Promise<Outcome> {
  const workspace = need(values, 'workspace')
  const signers = localSigners(home)
  const { document, view, hash: policyHash } = await requireInForce(signers, workspace)
  const policy = compiled(document, 'the policy in force')
  const signer = signerOf(document, values)
  const at = nowS()
  const fields = draft.fields({ number: document.number, hash: policyHash })
  const signed = signStatement(document, signer, {
    at,
    expires: at + LIMITS.statementS,
    ...fields,
  } as never)
  const { suspensions = [], revoked = [] } = view
  const fault = faultOf(policy, readSigned(signed), blockedKeysOf(document, suspensions, revoked))
  if (fault !== null) throw new OperatorError(`the statement was not signed: ${fault}`)
  const problems = await presentItem(signers, { kind: 'statement', workspace, signed })
  const recorded = await nodesWith(signers, workspace, draft.isRecorded)
  const { statement } = readSigned(signed)
  return {
    result: { statement: statementHash(statement), workspace, ...draft.result, recorded },
    text: draft.textOf(nodesText(recorded)),
    notices: problems.map((problem) => `warning: ${problem}`),
    exitCode: recorded.length >= Math.min(2, signers.length) ? 0 : 1,
  }
}

/** Vetoes a change, which need not be pending yet. */
export const veto: Run = async ({ home, values }) => {
  const hash = need(values, 'hash')
  if (!HASH.test(hash)) throw new OperatorError('--hash: must be 64 lower-case hex digits')
  return signAndPresent(home, values, {
    fields: ({ number, hash: own }) => ({
      kind: 'veto',
      policy: { number, hash: own },
      next: { number: number + 1, hash },
    }),
    isRecorded: ({ next }) => next?.hash !== hash || next.vetoed_by !== null,
    result: { hash },
    textOf: (nodes) => `the change with hash ${hash} is vetoed at ${nodes}`,
  })
}

/** Suspends a key of another person for seven days. */
export const suspend: Run = async ({ home, values }) => {
  const [person, key] = [need(values, 'person'), need(values, 'key-id')]
  const reason = values['reason'] === undefined ? 'no reason given' : need(values, 'reason')
  const target = { person, key } satisfies Extract<Statement, { kind: 'suspend' }>['target']
  return signAndPresent(home, values, {
    fields: () => ({ kind: 'suspend', target, reason }),
    isRecorded: ({ suspensions = [] }) =>
      suspensions.some((each) => each.target.person === person && each.target.key === key),
    result: { target },
    textOf: (nodes) => `the key ${key} of ${person} is suspended for seven days at ${nodes}`,
  })
}

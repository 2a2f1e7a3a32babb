import {
  actSentences,
  documentHash,
  readDocument,
  statementSentences,
  type PolicyDocument,
  type Statement,
  type StatementOf,
} from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import { OperatorError } from '../command.ts'
import { callPlatform } from '../connect.ts'
import { judged } from '../policy/files.ts'
import { APPROVAL_S, nowS, signerOf, signStatement } from '../policy/statements.ts'
import { needsLine } from '../policy/text.ts'
import type { Run } from './typed.ts'

type Needs = Parameters<typeof needsLine>[0]
/** What an approval signs, without the fields of its signer. */
type Shown = Omit<
  StatementOf<'approval'>,
  'kind' | 'by' | 'key' | 'at' | 'expires' | 'decision'
> & { action: 'transfer' | 'refund' | 'stake' | 'forward' }

interface Detail {
  id: string
  state: string
  statement: Shown
  document: string | null
}

/**
 * Returns the policy document that an approval names.
 * @throws OperatorError if no node returned it, or the platform shows another one
 */
function documentOf({ statement, document }: Detail): PolicyDocument {
  if (document === null)
    throw new OperatorError('no signer node returned the policy document: try again later')
  const read = judged('document', () => readDocument(document))
  const { policy, workspace, mode, nodes } = statement
  if (
    documentHash(read) !== policy.hash ||
    read.workspace !== workspace ||
    read.mode !== mode ||
    read.nodes !== nodes
  )
    throw new OperatorError(
      `ID: the policy has changed since the transfer was judged by document ${policy.number}: try again in a minute`,
    )
  return read
}

/** Signs a person's approval or rejection, and sends it to the platform. */
export const approve: Run = async ({ home, words: [id = ''], values }) => {
  const shown = await callPlatform(home, 'approval show', { id })
  if (shown['action'] === 'policy_change')
    return (await import('./approve-change.ts')).approveChange(home, shown as never, values)
  const detail = shown as unknown as Detail
  const document = documentOf(detail)
  const signer = signerOf(document, values)
  const decision = values['reject'] === undefined ? 'approve' : 'reject'
  const at = nowS()
  const fields = { ...detail.statement, kind: 'approval', decision, at, expires: at + APPROVAL_S }
  const signed = JSON.parse(signStatement(document, signer, fields as never)) as {
    statement: Statement
    signature: string
  }
  printNotice(statementSentences(signed.statement))
  const result = (await callPlatform(home, 'approval give', {
    id,
    decision: {
      id: detail.id,
      decision,
      by: signer.person,
      key: signer.id,
      at,
      expires: at + APPROVAL_S,
      signature: signed.signature,
    },
  })) as unknown as { id: string; state: string; needs: Needs }
  return { result: { ...result }, text: lineOf(result) }
}

function lineOf({ id, state, needs }: { id: string; state: string; needs: Needs }): string {
  if (state === 'rejected') return `transfer ${id} is rejected and will fail`
  return state === 'approved'
    ? `transfer ${id} has all approvals and continues`
    : `transfer ${id} waits for further approvals; approvals so far: ${needsLine(needs)}`
}

/** Lists the transfers and policy changes that wait for approvals. */
export const list: Run = async ({ home, values }) => {
  const input = values['workspace'] === undefined ? {} : { workspace: values['workspace'] }
  const { approvals, changes, more } = (await callPlatform(
    home,
    'approval list',
    input,
  )) as unknown as {
    approvals: { id: string; statement: Shown; needs: Needs; expires_at: string }[]
    changes: { id: string; workspace: string; number: number; needs: Needs; expires_at: string }[]
    more: boolean
  }
  const lines = [
    ...approvals.flatMap(({ id, statement, needs, expires_at }) => [
      `${id}, until ${expires_at}; approvals so far: ${needsLine(needs)}`,
      ...actSentences(statement.action, statement.facts as never).map(
        (sentence) => `  ${sentence}`,
      ),
    ]),
    ...changes.flatMap(({ id, workspace, number, needs, expires_at }) => [
      `${id}, until ${expires_at}; approvals so far: ${needsLine(needs)}`,
      `  Policy document ${number} of the workspace ${workspace}.`,
    ]),
  ]
  return {
    result: { approvals, changes, more },
    text: lines.length === 0 ? 'nothing waits for approvals' : lines,
  }
}

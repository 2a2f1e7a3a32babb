import { loadRegistry } from '@custody/chains'
import { diff, documentHash, lint, simulate, type Difference, type Finding } from '@custody/policy'
import { newestActs } from '../../../custody/policies/past-acts.ts'
import { stoppedRules } from '../../../custody/policies/standing-rules.ts'
import { OperatorError } from '../command.ts'
import { localSigners } from '../connect.ts'
import { judged, readPolicyFile } from '../policy/files.ts'
import { inForceOf, policyViews, requireInForce } from '../policy/nodes.ts'
import { historyOf } from '../policy/past.ts'
import { surroundings } from '../policy/surroundings.ts'
import { compiled, registryOf } from '../policy/statements.ts'
import { need, type Run } from './typed.ts'

const DEFAULT_LAST = '1000'

const differenceLine = ({ tendency, path, sentence }: Difference): string =>
  `${tendency}: ${path}: ${sentence}`
const findingLine = ({ severity, path, message }: Finding): string =>
  `${severity}: ${path === '' ? '' : `${path}: `}${message}`

/** Compares a policy file with the document in force. */
export const compare: Run = async ({ home, words }) => {
  const { document } = judged('FILE', () => readPolicyFile(words[0] as string, 'FILE'))
  const inForce = await requireInForce(localSigners(home), document.workspace)
  const differences = diff(inForce.document, document)
  const findings = lint(document, {
    registry: registryOf(document.mode),
    previous: inForce.document,
    ...(await surroundings(home, document)),
  })
  const isValid = findings.every(({ severity }) => severity !== 'error')
  const { number } = inForce.document
  return {
    result: {
      valid: isValid,
      in_force: { number, hash: inForce.hash },
      number: document.number,
      hash: documentHash(document),
      differences,
      findings,
    },
    text: [
      `compared with policy ${number} with hash ${inForce.hash}`,
      ...(differences.length === 0
        ? ['The documents have no difference.']
        : differences.map(differenceLine)),
      ...findings.map(findingLine),
    ],
    exitCode: isValid ? 0 : 1,
  }
}

/**
 * Judges past transfers and forwards by a policy file and by the document in force, and lists the standing rules
 * that the file would stop.
 */
export const simulateFile: Run = async ({ home, words, values }) => {
  const { document } = judged('FILE', () => readPolicyFile(words[0] as string, 'FILE'))
  const workspace = need(values, 'workspace')
  if (document.workspace !== workspace)
    throw new OperatorError(
      `--workspace: the document is for the workspace ${document.workspace}, not for ${workspace}`,
    )
  const next = compiled(document, 'FILE')
  const last = values['last'] === undefined ? DEFAULT_LAST : need(values, 'last')
  const { acts: transfers, forwarded, forwards } = await historyOf(home, document, { last })
  const acts = newestActs([...transfers, ...forwarded], Number(last))
  const { views } = await policyViews(localSigners(home), workspace)
  const inForce = inForceOf(views)
  const current = inForce && compiled(inForce.document, 'the policy in force')
  const result = simulate(next, current, acts)
  const { same, newly_denied, newly_approval, newly_allowed, unused_rules } = result
  const stopped = stoppedRules(loadRegistry(document.mode), next, forwards)
  const listed = (what: string, ids: readonly string[]): string[] =>
    ids.length === 0 ? [] : [`${what}: ${ids.length}`, ...ids.map((id) => `  ${id}`)]
  return {
    result: { ...result, judged: acts.length, forwards: forwards.length, stopped },
    text: [
      current
        ? `${acts.length} transfers and forwards, compared with policy ${current.document.number} in force`
        : `${acts.length} transfers and forwards; the workspace has no policy in force, so all were allowed`,
      `same result: ${same}`,
      ...listed('newly denied', newly_denied),
      ...listed('would newly need approvals', newly_approval),
      ...listed('newly allowed', newly_allowed),
      ...stopped,
      ...(unused_rules.length === 0 ? [] : [`unused rules: ${unused_rules.join(', ')}`]),
    ],
  }
}

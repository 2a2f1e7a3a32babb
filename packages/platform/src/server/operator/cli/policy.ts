import { documentHash, lint, PolicyError, ruleSentence, type Finding } from '@custody/policy'
import { resolve } from 'node:path'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { localSigners } from '../connect.ts'
import { unapprovedLines } from '../policy/input-approvals.ts'
import { judged, readPolicyFile, writePolicyFile, type PolicyFile } from '../policy/files.ts'
import { installAt } from '../policy/install.ts'
import { inForceOf, placeOf, policyViews, type InForce, type PolicyView } from '../policy/nodes.ts'
import {
  compiled,
  missingLine,
  missingProofs,
  registryOf,
  signerOf,
  signStatement,
  without,
} from '../policy/statements.ts'
import { documentLines } from '../policy/text.ts'
import { surroundings } from '../policy/surroundings.ts'
import { resetAt } from '../policy/reset.ts'
import { resetLines } from '../policy/reset-lines.ts'
import { uninstallAt } from '../policy/uninstall.ts'
import { need, type Outcome, type Run } from './typed.ts'

const findingLine = ({ severity, path, message }: Finding): string =>
  `${severity}: ${path === '' ? '' : `${path}: `}${message}`

/** Returns the outcome for a document that cannot be read. */
function unreadable({ code, path, message }: PolicyError): Outcome {
  return {
    result: {
      valid: false,
      hash: null,
      findings: [{ severity: 'error', path, code, message }],
      rules: [],
    },
    text: `error: ${message}`,
    exitCode: 1,
  }
}

export const check: Run = async ({ home, words }) => {
  let file: PolicyFile
  try {
    file = readPolicyFile(words[0] as string, 'FILE')
  } catch (error) {
    if (error instanceof PolicyError) return unreadable(error)
    throw error
  }
  const { document, possessions } = file
  const findings = lint(document, {
    registry: registryOf(document.mode),
    ...(await surroundings(home, document)),
  })
  const isValid = findings.every(({ severity }) => severity !== 'error')
  const missing = isValid ? missingProofs(compiled(document, 'FILE'), possessions) : []
  return {
    result: {
      valid: isValid,
      number: document.number,
      hash: documentHash(document),
      findings,
      rules: document.rules.map(ruleSentence),
      missing,
    },
    text: [...documentLines(document), ...findings.map(findingLine), ...missing.map(missingLine)],
    exitCode: isValid ? 0 : 1,
  }
}

/** Adds a person's proof of possession to a policy file. */
export const sign: Run = ({ words, values }) => {
  const path = words[0] as string
  const file = judged('FILE', () => readPolicyFile(path, 'FILE'))
  const { document } = file
  const policy = compiled(document, 'FILE')
  const signer = signerOf(document, values)
  const { number } = document
  const proof = signStatement(document, signer, {
    kind: 'possession',
    policy: { number, hash: policy.hash },
  })
  const possessions = [...without(file.possessions, signer), proof]
  writePolicyFile({ ...file, possessions })
  const missing = missingProofs(policy, possessions)
  return {
    result: {
      file: resolve(path),
      person: signer.person,
      key: signer.id,
      number,
      hash: policy.hash,
      missing,
    },
    text: [
      `${signer.person} has signed policy ${number} with hash ${policy.hash} by the key ${signer.id}`,
      ...(missing.length === 0
        ? ['every key has a proof of possession']
        : missing.map(missingLine)),
    ],
  }
}

export const place: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const { views } = await policyViews(localSigners(home), workspace)
  const { mode, nodes } = placeOf(views)
  return {
    result: { mode, workspace, nodes },
    text: [`mode: ${mode}`, `workspace: ${workspace}`, `nodes: ${nodes}`],
  }
}

export const install: Run = ({ home, values }) => installAt(home, localSigners(home), values)

export const reset: Run = ({ home, values }) => resetAt(localSigners(home), values)

export const uninstall: Run = ({ home, values }) => uninstallAt(localSigners(home), values)

/** Returns a line for each stop, and one for the pending document. */
function stateLines({ next, stops = [], suspensions = [] }: PolicyView): string[] {
  const time = (seconds: number) => new Date(seconds * 1000).toISOString()
  return [
    ...(next
      ? [
          `pending: policy ${next.number} with hash ${next.hash}, in force from ${time(next.acts_at)}` +
            (next.vetoed_by === null
              ? ''
              : `; ${next.vetoed_by}, whom it removes, has vetoed it: the operators of two nodes must confirm it`),
        ]
      : []),
    ...stops.map(
      ({ sub_account, by, at, hash }) =>
        `STOPPED: ${sub_account === null ? 'the whole workspace' : `sub-account ${sub_account}`}, by ${by} at ${time(at)} (${hash})`,
    ),
    ...suspensions.map(({ target: { person, key } }) => `suspended: key ${key} of ${person}`),
  ]
}

const differingLine = ({ node, number, hash }: PolicyView): string =>
  hash === null
    ? `signer ${node} has NO policy of the workspace in force`
    : `signer ${node} has ANOTHER policy in force: ${number} with hash ${hash}`

/** Returns the outcome if no node has a policy of the workspace in force. */
function nothingInForce(workspace: string, views: readonly PolicyView[]): Outcome {
  const first = views.flatMap((view) => view.first.filter(({ node }) => node === view.node))
  return {
    result: { number: null, hash: null, held: [], document: null, next: null, stops: [], first },
    text: [
      `the workspace ${workspace} has no policy in force`,
      ...first.map(
        ({ node, hash }) => `signer ${node}: the first document was entered, hash ${hash}`,
      ),
    ],
  }
}

const nextOf = ({ next }: PolicyView) =>
  next ? { ...next, document: JSON.parse(next.document) as unknown } : null

function shown(
  views: readonly PolicyView[],
  { view, document, hash, held }: InForce,
  problems: readonly string[],
): Outcome {
  const differing = views.filter((each) => each.hash !== hash)
  return {
    result: {
      number: document.number,
      hash,
      held,
      document,
      next: nextOf(view),
      stops: view.stops ?? [],
      enrolments: views.flatMap(({ node, enrolments = [] }) =>
        enrolments.map((each) => ({ node, ...each })),
      ),
      orders: views.flatMap(({ node, orders = [] }) => orders.map((each) => ({ node, ...each }))),
      resets: views.flatMap(({ node, reset: each }) => (each ? [{ node, ...each }] : [])),
      differing: differing.map(({ node, number, hash: other }) => ({ node, number, hash: other })),
    },
    text: [
      ...documentLines(document),
      `in force at ${held.map((node) => `signer ${node}`).join(', ')}`,
      ...stateLines(view),
      ...resetLines(views),
      ...unapprovedLines(views),
      ...differing.map(differingLine),
    ],
    notices: problems.map((problem) => `warning: ${problem}`),
    exitCode: differing.length === 0 ? 0 : 1,
  }
}

/** Prints what these nodes have in force. */
export async function showAt(signers: readonly NodePeer[], workspace: string): Promise<Outcome> {
  const { views, problems } = await policyViews(signers, workspace)
  const inForce = inForceOf(views)
  const outcome = inForce ? shown(views, inForce, problems) : nothingInForce(workspace, views)
  return { ...outcome, result: { ...outcome.result, place: placeOf(views) } }
}

export const show: Run = ({ home, values }) => showAt(localSigners(home), need(values, 'workspace'))

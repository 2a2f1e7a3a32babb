import { canonicalText, checkDocument, documentHash, type Person } from '@custody/policy'
import { documentWith } from '../../../../policy/testing/documents.ts'
import { possessionsOf } from '../../../../policy/testing/governance.ts'
import { nodesHash } from '../../../../signer/src/governance/word.ts'
import { WORKSPACE, type ClusterKeys } from './cluster-keys.ts'

/** ID of the only rule, which allows payments within a window of an hour. */
export const RULE = 'all'

/** Largest sums of an hour, in coins: a few payments of a run. */
const WINDOW = { BTC: '0.065', ETH: '0.0065', XLM: '6.5' } as const

/** The first document of the workspace, as operators enter it. */
export interface FirstDocument {
  workspace: string
  document: string
  possessions: string[]
  hash: string
}

export function firstDocument(keys: ClusterKeys, apiKey: string): FirstDocument {
  const people = (documentWith().people as Person[]).map((person) =>
    person.id === 'frank' ? { ...person, api_keys: [apiKey] } : person,
  )
  const rule = {
    id: RULE,
    effect: 'allow',
    match: { action: ['transfer'], assets: 'any' },
    windows: [{ name: 'hour', hours: 1, per: 'sub_account', max: WINDOW }],
  }
  const nodes = nodesHash(keys.identities)
  const document = checkDocument(
    documentWith([rule], { mode: 'local', workspace: WORKSPACE, nodes, people }),
  )
  return {
    workspace: WORKSPACE,
    document: canonicalText(document),
    possessions: possessionsOf(document).map((proof) => JSON.stringify(proof)),
    hash: documentHash(document),
  }
}

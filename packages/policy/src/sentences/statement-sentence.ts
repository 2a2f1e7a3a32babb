import type { Action } from '../document/rules.ts'
import type { ActFacts, EnrolmentFacts, OrderFacts } from '../facts.ts'
import type { Statement, StatementOf } from '../statements/shapes.ts'
import { amountText, quote, timeText } from './words.ts'

const VERBS: Readonly<Record<Action, string>> = {
  transfer: 'Transfer',
  refund: 'Refund',
  forward: 'Forward',
  stake: 'Stake',
}

/**
 * Returns the facts of an act as sentences. Addresses are never shortened. The text depends on
 * nothing but the facts, which are what is signed.
 */
export function actSentences(action: Action, facts: ActFacts): string[] {
  const { asset, network, decimals, amount, standing, fee_max, contract } = facts
  const tag = facts.tag === null ? 'without tag' : `with tag ${quote(facts.tag)}`
  const what = amount === null ? `incoming ${asset}` : amountText(amount, decimals, asset)
  const resource = facts.resource === null ? '' : ` for ${facts.resource}`
  return [
    `${VERBS[action]} ${what}${resource} from sub-account ${quote(facts.sub_account)} to ${facts.to} ${tag} on ${network}.`,
    ...(contract === null ? [] : [`${asset} is the token of the contract ${contract}.`]),
    ...(standing === null
      ? []
      : [
          `Each forward moves at least ${amountText(standing.min_amount, decimals, asset)}, and all forwards of 24 hours at most ${amountText(standing.daily_cap, decimals, asset)}, until ${timeText(standing.ends_at)}.`,
        ]),
    ...(fee_max === null
      ? []
      : [`The fee is at most ${amountText(fee_max, facts.fee_decimals, facts.fee_asset)}.`]),
  ]
}

const enrolmentSentences = (facts: EnrolmentFacts): string[] => [
  `Enrol the API key ${facts.api_key} with role ${facts.role} for sub-account ${quote(facts.sub_account)}${facts.person === undefined ? '' : ` as a key of ${facts.person}`}.`,
  `The fingerprint of its public key is ${facts.fingerprint}.`,
]

/** Returns what an order does with a gas tank, as a sentence. */
export function orderSentence(facts: OrderFacts): string {
  const { asset, network, decimals, amount, to, resource } = facts
  const tag = facts.tag === null ? 'without tag' : `with tag ${quote(facts.tag)}`
  return amount === null
    ? `Send the whole balance of the gas tank of ${network}, in ${asset}, to ${to} ${tag}.`
    : `Stake ${amountText(amount, decimals, asset)} of the gas tank of ${network} for ${resource}.`
}

function approvalSentences(statement: StatementOf<'approval'>): string[] {
  if (statement.action === 'enrolment') return enrolmentSentences(statement.facts)
  if (statement.action === 'drain' || statement.action === 'tank-stake')
    return [orderSentence(statement.facts), `Order ${statement.id} of the operators.`]
  return actSentences(statement.action, statement.facts)
}

function meaningOf(statement: Statement): string[] {
  const { by } = statement
  switch (statement.kind) {
    case 'approval':
      return [
        `${by} ${statement.decision === 'approve' ? 'approves' : 'rejects'} the following.`,
        ...approvalSentences(statement),
      ]
    case 'possession':
      return [
        `${by} holds the key ${statement.key}, and agrees that it is in policy document ${statement.policy.number} with hash ${statement.policy.hash}.`,
      ]
    case 'change':
      return [
        `${by} approves that policy document ${statement.next.number} with hash ${statement.next.hash} comes into force at ${timeText(statement.acts_at)}.`,
      ]
    case 'veto':
      return [
        `${by} vetoes policy document ${statement.next.number} with hash ${statement.next.hash}.`,
      ]
    case 'stop': {
      const scope =
        statement.sub_account === null
          ? 'the whole workspace'
          : `sub-account ${quote(statement.sub_account)}`
      return [`${by} stops all signing for ${scope}. Reason: ${quote(statement.reason)}.`]
    }
    case 'resume':
      return [`${by} approves the end of the stop with hash ${statement.stop}.`]
    case 'suspend':
      return [
        `${by} suspends the key ${statement.target.key} of ${statement.target.person} for seven days. Reason: ${quote(statement.reason)}.`,
      ]
    case 'revoke':
      return [`${by} revokes their own key ${statement.target.key}.`]
  }
}

/** Returns a statement as sentences, which depend on nothing but the statement. */
export function statementSentences(statement: Statement): string[] {
  const times =
    'expires' in statement
      ? [`Signed at ${timeText(statement.at)}, valid until ${timeText(statement.expires)}.`]
      : []
  return [
    ...meaningOf(statement),
    `Workspace ${quote(statement.workspace)}, mode ${statement.mode}.`,
    ...times,
  ]
}

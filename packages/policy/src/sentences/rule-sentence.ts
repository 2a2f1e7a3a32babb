import type { Approvals } from '../document/people.ts'
import type { Match, Rule, SubAccounts, Window } from '../document/rules.ts'
import type { Quorum } from '../evaluation/compile.ts'
import { LIMITS } from '../limits.ts'
import { durationText, join, quote } from './words.ts'

const ACTS = { transfer: 'transfers', refund: 'refunds', forward: 'forwards', stake: 'stakes' }

const amountsText = (amounts: Readonly<Record<string, string>>, last: 'and' | 'or'): string =>
  join(
    Object.entries(amounts).map(([asset, amount]) => `${amount} ${asset}`),
    last,
  )

const accountsText = (accounts: SubAccounts): string =>
  Array.isArray(accounts)
    ? `${accounts.length === 1 ? 'sub-account' : 'sub-accounts'} ${join(accounts.map(quote), 'or')}`
    : `sub-accounts that begin with ${quote(accounts.prefix)}`

function destinationText(to: Match['to'], isAllow: boolean): string[] {
  if (to === undefined || to === 'any') return []
  const noTag = isAllow ? ' without tag' : ' with any tag'
  const listed = (to.addresses ?? []).map(({ network, address, tag, any_tag }) => {
    const tagText =
      tag !== undefined ? ` with tag ${quote(tag)}` : any_tag ? ' with any tag' : noTag
    return `${address} on ${network}${tagText}`
  })
  const own =
    to.own === undefined
      ? []
      : [
          to.own === 'workspace'
            ? 'own addresses of the workspace'
            : 'own addresses of the same sub-account',
        ]
  return [`to ${join([...listed, ...own], 'or')}`]
}

/** Returns what a rule matches: `transfers of BTC from sub-account "main" to …`. */
function matchText(match: Match, isAllow: boolean): string {
  const acts = match.action ? join(match.action.map((action) => ACTS[action])) : 'every act'
  const { assets, networks, api_keys, people, sub_accounts, sub_accounts_not } = match
  return [
    acts,
    ...(assets === 'any' ? ['of every asset'] : assets ? [`of ${join(assets, 'or')}`] : []),
    ...(networks ? [`on ${join(networks, 'or')}`] : []),
    ...(sub_accounts ? [`from ${accountsText(sub_accounts)}`] : []),
    ...(sub_accounts_not ? [`except from ${accountsText(sub_accounts_not)}`] : []),
    ...(people ? [`that ${join(people, 'or')} requested`] : []),
    ...(api_keys ? [`that the API key ${join(api_keys, 'or')} requested`] : []),
    ...destinationText(match.to, isAllow),
  ].join(' ')
}

/** Returns quorums as words: `2 of treasury and 1 of admins`. */
export const approvalsText = (approvals: Approvals): string =>
  join(approvals.map(({ group, k }) => `${k} of ${group}`))

function quorumText({ approvals, approval_s, initiator }: Quorum): string {
  const time = durationText(approval_s ?? LIMITS.approvalDefaultS)
  const own = initiator === true ? ', the requester included' : ''
  return `the approvals of ${approvalsText(approvals ?? [])} within ${time}${own}`
}

const PER = {
  workspace: 'in the workspace',
  sub_account: 'per sub-account',
  api_key: 'per API key',
  destination: 'per destination',
}

/** Returns a window as words: `2 BTC and 500 acts in 24 hours per sub-account`. */
function windowText({ hours, per, max, count, share }: Window): string {
  const limits = [
    ...(max ? [amountsText(max, 'and')] : []),
    ...(count === undefined ? [] : [`${count} ${count === 1 ? 'act' : 'acts'}`]),
  ]
  const part =
    per === 'workspace' && share !== '1'
      ? ` (of which one sub-account may use ${share ?? '0.25'})`
      : ''
  return `${join(limits)} in ${durationText(hours * 3600)} ${PER[per]}${part}`
}

const windowsText = (windows: readonly Window[]): string => join(windows.map(windowText))

function rangeText(rule: Rule): string[] {
  const range = 'amount' in rule ? rule.amount : undefined
  return [
    ...(range?.min ? [`of at least ${amountsText(range.min, 'or')}`] : []),
    ...(range?.max ? [`of at most ${amountsText(range.max, 'or')}`] : []),
    ...('fee_max' in rule && rule.fee_max
      ? [`with a fee of at most ${amountsText(rule.fee_max, 'or')}`]
      : []),
  ]
}

/** Returns a rule as one sentence in plain English. */
export function ruleSentence(rule: Rule): string {
  const what = [matchText(rule.match, rule.effect === 'allow'), ...rangeText(rule)].join(', ')
  switch (rule.effect) {
    case 'allow': {
      const windows = rule.windows ? [`up to ${windowsText(rule.windows)}`] : []
      const quorum = rule.approvals ? [`with ${quorumText(rule)}`] : []
      return `${rule.id}: Allow ${[what, ...windows, ...quorum].join(', ')}.`
    }
    case 'require':
      return `${rule.id}: Require ${quorumText(rule)} for ${what}.`
    case 'deny':
      return `${rule.id}: Deny ${what}.`
    case 'limit': {
      const above = rule.above === 'deny' ? 'deny the act' : `require ${quorumText(rule.above)}`
      return `${rule.id}: Limit ${what} to ${windowsText(rule.windows)}; above that, ${above}.`
    }
  }
}

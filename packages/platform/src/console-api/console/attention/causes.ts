import { z } from 'zod'
import type { Facts } from './facts.ts'

/** One item that needs a person's attention. */
export const itemShape = z.object({
  cause: z.string().meta({ description: 'Identifier of the cause, for example `approvals_open`' }),
  count: z.int().min(1).meta({ description: 'Number of objects that have the cause' }),
  tone: z.enum(['bad', 'warn', 'frozen', 'info']),
  text: z.string().meta({ description: 'Sentence without a full stop' }),
  link: z.string().meta({ description: 'Path of the page that shows the objects' }),
})
export type Item = z.output<typeof itemShape>
type Tone = Item['tone']

/** An item without its cause. `link`: path below the sub-account's pages, or below `/console`. */
type Finding = Omit<Item, 'cause'>

const some = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`

/** Returns an item if there is at least one object. */
const ofCount = (
  count: number,
  tone: Tone,
  link: string,
  text: (count: number) => string,
): Finding[] => (count === 0 ? [] : [{ count, tone, text: text(count), link }])

/** Returns an item that lists names, if there is at least one. */
const ofNames = (
  names: readonly string[],
  tone: Tone,
  link: string,
  text: (names: string) => string,
): Finding[] => ofCount(names.length, tone, link, () => text(names.join('; ')))

/** Returns an item for each alert of the page Health with this code. */
const ofAlerts =
  (code: string, link = '/health') =>
  ({ alerts }: Facts): Finding[] =>
    alerts
      .filter((alert) => alert.code === code)
      .map(({ level, message }) => ({
        count: 1,
        tone: level === 'critical' ? 'bad' : 'warn',
        text: message.slice(0, 1).toUpperCase() + message.slice(1),
        link,
      }))

/** Words for transfers and forwarding rules that wait for approvals. */
function waitingText({ transfers, rules }: Facts['waiting']): string {
  const words = [
    transfers === 0 ? '' : some(transfers, 'transfer', 'transfers'),
    rules === 0 ? '' : some(rules, 'forwarding rule', 'forwarding rules'),
  ]
  const subject = words.filter((word) => word !== '').join(' and ')
  return `${subject} ${transfers + rules === 1 ? 'waits' : 'wait'} for approvals`
}

/**
 * Every cause of the list "Needs attention". A function returns the items of its cause; none if the
 * facts do not have it.
 */
export const CAUSES = {
  database_held: ofAlerts('HELD'),
  disk_full: ofAlerts('DISK_FULL'),
  nothing_signs: ofAlerts('NOTHING_SIGNS'),
  node_away: ofAlerts('NODE_AWAY'),
  node_banned: ofAlerts('NODE_BANNED'),
  chain_contradicted: ofAlerts('CHAIN_CONTRADICTED'),
  chain_behind: ofAlerts('CHAIN_BEHIND'),
  queue_old: ofAlerts('QUEUE_OLD'),
  webhooks_disabled: ofAlerts('WEBHOOK_DISABLED', '/webhooks'),
  policy_stopped: ({ policy }) =>
    (policy?.stops ?? []).map(({ sub_account: account, by }) => ({
      count: 1,
      tone: 'bad',
      text: `${by} stopped signing for ${account === null ? 'the workspace' : 'this sub-account'}`,
      link: '/policy',
    })),
  approvals_expiring: ({ waiting }) =>
    ofCount(
      waiting.expiring,
      'bad',
      '/approvals',
      (count) => `${some(count, 'request', 'requests')} for approvals will expire within a day`,
    ),
  approvals_open: ({ waiting }) =>
    ofCount(waiting.transfers + waiting.rules, 'warn', '/approvals', () => waitingText(waiting)),
  policy_changes_open: ({ waiting }) =>
    ofCount(
      waiting.changes,
      'warn',
      '/approvals',
      (count) =>
        `${some(count, 'policy change waits', 'policy changes wait')} for approvals or proofs`,
    ),
  keys_suspended: ({ policy }) =>
    ofNames(
      policy?.suspended ?? [],
      'warn',
      '/policy',
      (names) => `Keys of people are suspended: ${names}`,
    ),
  policy_windows: ({ policy }) =>
    ofNames(
      policy?.windows ?? [],
      'warn',
      '/policy',
      (names) => `More than 80 % of time windows of the policy is used: ${names}`,
    ),
  api_user_requests: ({ apiUserRequests }) =>
    ofCount(
      apiUserRequests,
      'warn',
      '/api-users',
      (count) =>
        `${some(count, 'request for an API user waits', 'requests for API users wait')} for the operators for more than a day`,
    ),
  prepaid: ({ prepaid: { status, balance } }) =>
    status === 'ok'
      ? []
      : [
          {
            count: 1,
            tone: status === 'empty' ? 'bad' : 'warn',
            text: `The prepaid fee account is ${status}: $${balance.toFixed(2)} left`,
            link: '/prepaid',
          },
        ],
  gas_tanks: ({ tanks }) =>
    tanks.map(({ network, status }) => ({
      count: 1,
      tone: status === 'empty' ? 'bad' : 'warn',
      text: `The ${network} gas tank is ${status}`,
      link: `/tanks/${network}`,
    })),
  contract_payments_paused: ({ pausedNetworks }) =>
    ofNames(
      pausedNetworks,
      'warn',
      '/transactions',
      (names) => `Payments of contracts are not credited now on ${names}`,
    ),
  transactions_failed: ({ counts }) =>
    ofCount(
      counts.failed_24h,
      'bad',
      '/transactions?status=failed',
      (count) => `${some(count, 'transaction', 'transactions')} failed in 24 hours`,
    ),
  transactions_held: ({ counts }) =>
    ofCount(
      counts.held,
      'frozen',
      '/aml',
      (count) => `${some(count, 'transaction is', 'transactions are')} held by screening`,
    ),
  addresses_frozen: ({ counts }) =>
    ofCount(
      counts.frozen,
      'frozen',
      '/aml',
      (count) => `${some(count, 'address is', 'addresses are')} frozen`,
    ),
  transactions_pending: ({ counts }) =>
    ofCount(
      counts.pending,
      'info',
      '/transactions?status=pending',
      (count) => `${some(count, 'transaction is', 'transactions are')} on the way`,
    ),
  only_passkey: ({ hasOnlyPasskey }) =>
    ofCount(
      Number(hasOnlyPasskey),
      'warn',
      '/console/account',
      () => 'Your only way to sign in is one passkey: make recovery codes, or add another passkey',
    ),
} satisfies Record<string, (facts: Facts) => Finding[]>

const TONES: readonly Tone[] = ['bad', 'warn', 'frozen', 'info']

/**
 * Returns what needs attention, the most urgent first.
 * @param home path of the sub-account's pages
 */
export const itemsOf = (facts: Facts, home: string): Item[] =>
  Object.entries(CAUSES)
    .flatMap(([cause, find]) =>
      find(facts).map(({ count, tone, text, link }) => ({
        cause,
        count,
        tone,
        text,
        link: link.startsWith('/console/') ? link : home + link,
      })),
    )
    .toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone))

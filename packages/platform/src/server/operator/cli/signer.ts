import { resolve } from 'node:path'
import { OperatorError } from '../command.ts'
import { callPlatform, callSigner, localSigners } from '../connect.ts'
import { approvalLines, enrolAtNodes, enrolmentLine, readApiKey } from '../enrol.ts'
import { newOrder, nodeAt, orderNodes, type NodeAnswer } from '../nodes.ts'
import {
  orderApprovalLines,
  orderDrain,
  orderLine,
  orderStake,
  registryAt,
  type StakeAction,
  type TankOrder,
} from '../gas-tanks/orders.ts'
import { wishOf, writeTrust } from './api-user.ts'
import { need, type Outcome, type Run, type Values } from './typed.ts'

/**
 * Selects a node whose operator socket is on this machine: by its number, or by its data folder if
 * it is alone on its host.
 */
function pick(home: string, values: Values) {
  if (values['home'] !== undefined) return here(values)
  const signers = localSigners(home)
  if (signers.length === 0) {
    throw new OperatorError(
      'no signer node runs on this machine: run the command on the host of the node, with --home',
    )
  }
  const match = signers.find(({ node }) => String(node) === need(values, 'node'))
  if (!match) throw new OperatorError('--node: must be 1, 2 or 3')
  return match
}

export const status: Run = async ({ home, values }) => {
  const result =
    values['home'] === undefined
      ? ((await callPlatform(home, 'signer status', {})) as { nodes: Record<string, unknown>[] })
      : { nodes: [(await callSigner(here(values), 'status', {})) as Record<string, unknown>] }
  const lines = result.nodes.map((node) => {
    const name = `signer ${String(node['node'])}`
    if (node['error']) return `${name}: ${String(node['error'])}`
    return `${name}: ready, ${String(node['keys'])} keys, record ${(node['record'] as { height: number }).height}`
  })
  return {
    result: { ...result },
    text: lines,
    exitCode: result.nodes.every((node) => !node['error']) ? 0 : 1,
  }
}

export const refresh: Run = async ({ home, values }) => {
  const [first] =
    values['home'] === undefined && values['node'] === undefined
      ? localSigners(home)
      : [pick(home, values)]
  if (!first)
    throw new OperatorError(
      'no signer node runs on this machine: run the command on the host of a node, with --home',
    )
  const result = (await callSigner(
    first,
    'refresh',
    values['workspace'] ? { workspace: values['workspace'] } : {},
  )) as {
    refreshed: { key_id: string; epoch: number }[]
    failed: { key_id: string; reason: string }[]
  }
  if (values['workspace'] && result.refreshed.length + result.failed.length === 0) {
    throw new OperatorError(
      `--workspace: the signer nodes have no key of workspace ${String(values['workspace'])}`,
    )
  }
  const lines = [
    ...result.refreshed.map((key) => `${key.key_id}: epoch ${key.epoch}`),
    ...result.failed.map(
      (key) => `${key.key_id}: FAILED, the old shares stay in use: ${key.reason}`,
    ),
  ]
  return { result, text: lines, exitCode: result.failed.length === 0 ? 0 : 1 }
}

interface Ban {
  node: number
  identity: string
  at: number
  reason: string
  cause: string
  by?: number
}
const causeOf = ({ cause, reason, at }: Omit<Ban, 'node'>): string =>
  `${cause === 'operator' ? "operator's order" : 'proven cheat'}, ${new Date(at).toISOString()}: ${reason}`

export const bans: Run = async ({ home, values }) => {
  const signer = pick(home, values)
  const result = (await callSigner(signer, 'bans', {})) as { bans: Ban[]; reports: Ban[] }
  const lines = [
    ...result.bans.map(
      (each) =>
        `signer ${signer.node} has banned signer ${each.node} (${each.identity}): ${causeOf(each)}`,
    ),
    ...result.reports.map(
      (each) =>
        `signer ${each.by} reports a ban of signer ${each.node} (${each.identity}): ${causeOf(each)}`,
    ),
  ]
  return {
    result: { ...result },
    text:
      lines.length === 0
        ? `signer ${signer.node}: it has banned no peer, and no peer reports a ban`
        : lines,
  }
}

export const ban: Run = async ({ home, values }) => {
  const peer = need(values, 'peer')
  if (!/^[123]$/.test(peer)) throw new OperatorError('--peer: must be 1, 2 or 3')
  const reason = values['reason'] === undefined ? {} : { reason: values['reason'] }
  const result = (await callSigner(pick(home, values), 'ban', {
    node: Number(peer),
    ...reason,
  })) as Ban & { banned: number }
  const text = `signer ${result.node} has banned signer ${result.banned} (${result.identity}): ${causeOf(result)}`
  return { result: { ...result }, text }
}

export const backup: Run = async ({ home, values }) => {
  const file = resolve(need(values, 'out'))
  const result = (await callSigner(pick(home, values), 'backup', { file })) as Record<
    string,
    unknown
  >
  return { result, text: `backup written to ${file}` }
}

interface Restored {
  restored: boolean
  confirm?: string
  keys?: number
  imported?: number
  signed: boolean
  made_at: number
  workspaces: string[]
  key_ids: string[]
  enrolments: {
    api_key: string
    key_fingerprint: string
    role: string
    workspace: string
    sub_account: number
    sub_account_name: string | null
  }[]
  drains: { order: string; workspace: string; network: string; to_address: string }[]
  left_out: { api_key?: string; order?: string; workspace: string; missing_at: number[] }[]
  not_in_backup: number
  dropped: string[]
  not_read?: { node: number; missing: string; rules: string[] }
  other_records: number[]
  only_at_one_peer: {
    kinds: Record<string, number>
    listed: { id: string; kind: string; text: string }[]
  }
}

/** Lines about what one peer alone has, and about a peer whose record is not read. */
function peerLines(it: Restored): string[] {
  const { only_at_one_peer: only, dropped, not_read: absent, other_records: others } = it
  const kinds = Object.entries(only.kinds).map(([kind, count]) => `${count} ${kind}`)
  const kept = only.listed.filter(({ id }) => !dropped.includes(id))
  return [
    ...(kinds.length === 0 ? [] : [`restrictions that one peer alone has: ${kinds.join(', ')}`]),
    ...kept.map(({ id, kind, text }) => `kept: ${id} ${kind}, ${text}`),
    ...dropped.map((id) => `dropped: ${id}`),
    ...others.map(
      (node) =>
        `signer ${node} sent another record than the third node has seen: it was restored, or hides entries`,
    ),
    ...(absent === undefined
      ? []
      : [
          `NOT read: the record of signer ${absent.node}; missing: ${absent.missing}`,
          ...absent.rules.map((rule) => `NOT restored: forwarding rule ${rule}`),
        ]),
  ]
}

const restoredLines = (node: number, it: Restored): string[] => [
  `signer ${node}: ${it.restored ? 'restored' : 'it would be restored'} from a backup of ${new Date(it.made_at * 1000).toISOString()}` +
    (it.signed ? '' : ', which is not signed (an earlier version made it)'),
  `keys: ${it.key_ids.length}; workspaces: ${it.workspaces.join(', ') || 'none'}`,
  ...it.enrolments.map(
    ({ api_key, key_fingerprint, role, workspace, sub_account, sub_account_name }) =>
      `enrolled: ${api_key} ${key_fingerprint} ${role} ${workspace}/${sub_account_name ?? '-'} (${sub_account})`,
  ),
  ...it.drains.map(
    (each) =>
      `order: drain ${each.workspace} ${each.network} to ${each.to_address} (${each.order})`,
  ),
  ...it.left_out.map(
    (each) =>
      `NOT restored: ${each.api_key ?? `order ${String(each.order)}`} of ${each.workspace}, which signer ${each.missing_at.join(' and ')} ` +
      'does not have with these values: enter it again if it is correct',
  ),
  ...(it.not_in_backup === 0
    ? []
    : [
        `${it.not_in_backup} enrolments or orders of both peers are not in the backup: ask their operators, and enter the correct ones again`,
      ]),
  ...peerLines(it),
]

export const restore: Run = async ({ home, values }) => {
  const signer = pick(home, values)
  const result = (await callSigner(signer, 'restore', {
    file: resolve(need(values, 'in')),
    recovery_secret_file: resolve(need(values, 'recovery-secret')),
    ...(values['preview'] === true ? { preview: true } : {}),
    ...(values['confirm'] === undefined ? {} : { confirm: values['confirm'] }),
    ...(values['without'] === undefined ? {} : { without: Number(values['without']) }),
    ...(values['drop'] === undefined ? {} : { drop: String(values['drop']).split(',') }),
  })) as unknown as Restored
  const lines = restoredLines(signer.node, result)
  if (result.confirm !== undefined)
    lines.push(`check the list above, then run the same command with --confirm ${result.confirm}`)
  return {
    result: { ...result },
    text: lines,
    exitCode: result.restored || values['preview'] === true ? 0 : 2,
  }
}

// Orders to one node, on its own host, as its operator enters them (docs/enrolment.md).
const here = (values: Values) => nodeAt(resolve(need(values, 'home')))
const registry = (values: Values) => registryAt(resolve(need(values, 'home')))
const tank = (values: Values) => ({
  order: typeof values['order'] === 'string' ? values['order'] : newOrder(),
  workspace: need(values, 'workspace'),
  network: need(values, 'network'),
})
const ordered = (entered: TankOrder): Outcome => {
  const [answer] = entered.answers
  return {
    result: { ...answer },
    text: [
      orderLine(answer as NodeAnswer),
      `use --order ${entered.order} at the other nodes and at the platform`,
      ...orderApprovalLines(entered),
    ],
  }
}

export const enrol: Run = async ({ values }) => {
  const {
    answers: [answer],
    apiKey,
    index,
    trust,
  } = await enrolAtNodes([here(values)], wishOf(values))
  const lines = [
    enrolmentLine(answer as NodeAnswer),
    `API key ${apiKey}, index ${index}: use the same --api-key at the other nodes, and this --api-key and --index at the platform`,
    ...approvalLines([answer as NodeAnswer]),
    ...writeTrust(values, trust),
  ]
  return { result: { ...answer }, text: lines }
}

export const revoke: Run = async ({ values }) => {
  const node = here(values)
  const apiKey = readApiKey(need(values, 'api-key'))
  const {
    answers: [answer],
  } = await orderNodes(
    [node],
    'revoke',
    { api_key: apiKey },
    { expect: { api_key: apiKey, revoked: true } },
  )
  return {
    result: { ...answer },
    text:
      answer?.['known'] === true
        ? enrolmentLine(answer)
        : `signer ${node.node}: ${apiKey} was not enrolled here; it is now revoked and can never be enrolled`,
  }
}

export const drain: Run = async ({ values }) =>
  ordered(
    await orderDrain([here(values)], registry(values), { ...tank(values), to: need(values, 'to') }),
  )

const byOrder =
  (action: StakeAction): Run =>
  async ({ values }) =>
    ordered(
      await orderStake([here(values)], registry(values), {
        ...tank(values),
        action,
        amount: values['amount'],
        resource: values['resource'] ?? 'ENERGY',
      }),
    )
export const stake = byOrder('stake')
export const unstake = byOrder('unstake')
export const release = byOrder('release')

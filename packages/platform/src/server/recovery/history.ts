import { API_ROLES } from '@custody/request-auth/roles'
import { createHash } from 'node:crypto'
import { traitsOf, type UnsignedTransaction, type Registry } from '@custody/chains'
import { z } from 'zod'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  signers: SignerNodes
}

// This module reads the transactions that the signer nodes have recorded since this database was
// last compared with them. Everything that they sign was committed here first, so a recorded
// transaction that is not found is a commit that this database has lost.

/** Timeout for reading the records of a signer node, in milliseconds. */
const TIMEOUT_MS = 15_000
/**
 * Number of nodes that must respond. Two nodes sign, so any two of the three know every
 * transaction.
 */
export const NODES_NEEDED = 2

const name = z.string().max(4096)
const path = z.array(z.int().min(0).max(0x7fffffff)).max(8)
const unsignedSchema = z.object({
  network: name,
  bytes: z.string().regex(/^([0-9a-f]{2})+$/),
  inputs: z.array(z.object({ path })).min(1).max(400),
  change: z.object({ output: z.int().min(0), path }).optional(),
})
const BODIES = {
  step: z.object({
    step: name,
    purpose: name,
    workspace: name,
    intent: name.nullish(),
    transaction_id: name.nullish(),
    unsigned: unsignedSchema,
  }),
  signed: z.object({
    step_height: z.int(),
    signatures: z
      .array(
        z.object({
          signature: z.string().regex(/^[0-9a-f]{128}$/),
          recovery_id: z.int().min(0).max(3).nullable(),
        }),
      )
      .max(400),
  }),
  void: z.object({ keys: z.array(name).max(16), transaction_id: name.nullish() }),
  enrol: z.object({
    api_key: z.uuid(),
    public_key_pem: z.string().max(16_384),
    role: z.enum(API_ROLES),
    workspace: name,
    sub_account: z.int().min(1),
    sub_account_name: name.optional(),
  }),
  allocate: z.object({ workspace: name, curve: z.enum(['secp256k1', 'ed25519']) }),
  revoke: z.object({ api_key: name }),
  rule: z.object({
    rule: name,
    workspace: name,
    sub_account: z.int(),
    asset: name,
    destination: name,
  }),
} as const
type Body<K extends keyof typeof BODIES> = z.infer<(typeof BODIES)[K]>

const pageSchema = z.object({
  generation: z.int().min(0),
  height: z.int().min(0),
  before: z.string().nullable(),
  hash: z.string().nullable(),
  next: z.int().min(1),
  entries: z.array(z.object({ height: z.int(), at: z.int(), kind: name, body: z.unknown() })),
})

/** A transaction that nodes took part in signing, as they recorded it. */
export interface Recorded extends Omit<Body<'step'>, 'unsigned'> {
  /** Identifier derived from the transaction itself, independent of the other recorded fields. */
  id: string
  at: number
  unsigned: UnsignedTransaction
  /** Finished signatures of each node: one that verifies is sufficient; others are ignored. */
  signatures: Body<'signed'>['signatures'][]
  nodes: number[]
  /** Whether the nodes' records of the transaction differ. */
  disputed: boolean
}

/** An API user as enrolled at the nodes. */
export interface Enrolled extends Body<'enrol'> {
  nodes: number[]
  revokedBy: number[]
}

export interface Mark {
  node: number
  generation: number
  height: number
  hash: string
}

export interface History {
  unknown: Recorded[]
  /**
   * Transactions that this database has as unsigned, on networks where their change would look like
   * a deposit.
   */
  unsigned: Recorded[]
  enrolled: Enrolled[]
  rules: Body<'rule'>[]
  /** Keys of workspaces, with the nodes that report them. */
  keys: (Body<'allocate'> & { nodes: number[] })[]
  voided: Set<string>
  marks: Mark[]
  /** Nodes whose history is missing, with the reason. */
  missing: { node: number; reason: string }[]
}

/**
 * Returns a hash that identifies a transaction. The workspace and the paths are included, because
 * the bytes for one account may equal those for another with the same nonce (on EVM chains only the
 * signature identifies the sender).
 */
const idOf = (
  workspace: string,
  network: string,
  bytes: string,
  paths: readonly (readonly number[])[],
): string =>
  createHash('sha256')
    .update(JSON.stringify([workspace, network, bytes, paths]))
    .digest('hex')

interface NodeHistory {
  node: number
  mark: Mark
  steps: Map<number, Recorded>
  built: Set<string>
  enrolled: Map<string, Body<'enrol'>>
  revoked: Set<string>
  rules: Body<'rule'>[]
  keys: Body<'allocate'>[]
  voided: string[]
}

/**
 * Reads from every node the records since the marks, and returns those that this database does not
 * know.
 * @param whole whether to read enrolments and rules from the beginning, not only since the marks
 */
export async function readHistory(
  services: Pick<Services, 'database' | 'registry' | 'signers'>,
  whole: boolean,
): Promise<History> {
  const marks = new Map(
    (
      await services.database.query<Mark & { height: string }>(
        'select node, generation, height::text, hash from signer_marks',
      )
    ).map((row) => [row.node, { ...row, height: Number(row.height) }]),
  )
  const nodes = services.signers.peers.map(({ node }) => node)
  const answers = await Promise.allSettled(
    nodes.map((node) => readNode(services, node, whole ? undefined : marks.get(node))),
  )
  const merged: History = {
    unknown: [],
    unsigned: [],
    enrolled: [],
    rules: [],
    keys: [],
    voided: new Set(),
    marks: [],
    missing: [],
  }
  const index: HistoryIndex = {
    steps: new Map(),
    built: new Set(),
    keys: new Map(),
    enrolled: new Map(),
  }
  answers.forEach((answer, at) => {
    const node = nodes[at] as number
    if (answer.status === 'rejected') merged.missing.push({ node, reason: missingReason(answer) })
    else mergeNode(merged, index, node, answer.value)
  })
  const { steps, built } = index
  const all = [...steps.values()].sort((a, b) => a.at - b.at)
  merged.unknown = all.filter(({ id }) => !built.has(id))
  merged.unsigned = all.filter(
    ({ id, signatures, unsigned }) =>
      built.has(id) && signatures.length > 0 && hasChange(services, unsigned.network),
  )
  merged.enrolled = [...index.enrolled.values()]
  merged.keys = [...index.keys.values()]
  return merged
}

/** The merged histories by their keys. `built`: ids of transactions that this database has. */
interface HistoryIndex {
  steps: Map<string, Recorded>
  built: Set<string>
  keys: Map<string, History['keys'][0]>
  enrolled: Map<string, Enrolled>
}

/**
 * Returns why a node's history is missing.
 * @throws the reason if it is not an error of the node
 */
function missingReason({ reason }: PromiseRejectedResult): string {
  if (reason instanceof z.ZodError) return 'its response has an unknown format'
  if (reason instanceof NodeRefused || reason instanceof NodeUnavailable) return reason.message
  throw reason
}

/** Adds the history of one node to the merged history. */
function mergeNode(
  merged: History,
  { steps, built, keys, enrolled }: HistoryIndex,
  node: number,
  { mark, ...history }: NodeHistory,
): void {
  merged.marks.push(mark)
  for (const id of history.built) built.add(id)
  for (const step of history.steps.values()) {
    const recorded = steps.get(step.id)
    if (recorded) join(recorded, step)
    else steps.set(step.id, step)
  }
  for (const each of history.enrolled.values()) {
    const text = JSON.stringify([
      each.api_key,
      each.public_key_pem.trim(),
      each.role,
      each.workspace,
      each.sub_account,
      each.sub_account_name,
    ])
    const user = enrolled.get(text) ?? { ...each, nodes: [], revokedBy: [] }
    enrolled.set(text, user)
    user.nodes.push(node)
    if (history.revoked.has(each.api_key)) user.revokedBy.push(node)
  }
  for (const rule of history.rules)
    if (!merged.rules.some((each) => each.rule === rule.rule)) merged.rules.push(rule)
  for (const key of history.voided) merged.voided.add(key)
  for (const key of history.keys) {
    const name = `${key.curve} ${key.workspace}`
    const allocated = keys.get(name)
    if (allocated) allocated.nodes.push(node)
    else keys.set(name, { ...key, nodes: [node] })
  }
}

function hasChange(services: Pick<Services, 'registry'>, code: string): boolean {
  const network = services.registry.network(code)
  return network !== undefined && traitsOf(network).deposits === 'spendable'
}

function join(existing: Recorded, step: Recorded): void {
  const meaning = (each: Recorded) =>
    JSON.stringify([
      each.step,
      each.purpose,
      each.workspace,
      each.intent ?? null,
      each.transaction_id ?? null,
      each.unsigned.inputs.map((input) => input.path),
      each.unsigned.change ?? null,
    ])
  existing.disputed ||= meaning(existing) !== meaning(step)
  existing.at = Math.min(existing.at, step.at)
  existing.signatures.push(...step.signatures)
  existing.nodes.push(...step.nodes)
}

async function readNode(
  services: Pick<Services, 'database' | 'signers'>,
  node: number,
  mark: Mark | undefined,
): Promise<NodeHistory> {
  const reported: NodeHistory = {
    node,
    mark: mark ?? { node, generation: 0, height: 0, hash: '' },
    steps: new Map(),
    built: new Set(),
    enrolled: new Map(),
    revoked: new Set(),
    rules: [],
    keys: [],
    voided: [],
  }
  for (let from = (mark?.height ?? 0) + 1; ;) {
    const page = pageSchema.parse(
      await services.signers.call(node, 'POST', '/history', { from }, TIMEOUT_MS),
    )
    // The record differs from the one that was compared before: the node was restored or set up
    // again.
    if (
      mark &&
      mark.height > 0 &&
      from === mark.height + 1 &&
      (page.before !== mark.hash || page.generation !== mark.generation)
    )
      return readNode(services, node, undefined)
    await take(services, reported, page.entries)
    if (page.hash === null)
      throw new NodeUnavailable(node, 'its record ends before the height that it reported')
    // Transactions that are being signed during this comparison are checked again the next time.
    if (reported.built.size === 0)
      reported.mark = { node, generation: page.generation, height: page.next - 1, hash: page.hash }
    if (page.next <= from || page.next > page.height) return reported
    from = page.next
  }
}

async function take(
  services: Pick<Services, 'database'>,
  reported: NodeHistory,
  entries: z.infer<typeof pageSchema>['entries'],
): Promise<void> {
  const steps: { height: number; step: Recorded }[] = []
  for (const { kind, height, at, body } of entries) {
    if (kind === 'step') {
      const { unsigned, ...step } = BODIES.step.parse(body)
      const { change, ...rest } = unsigned
      steps.push({
        height,
        step: {
          ...step,
          unsigned: change ? { ...rest, change } : rest,
          id: idOf(
            step.workspace,
            unsigned.network,
            unsigned.bytes,
            unsigned.inputs.map((input) => input.path),
          ),
          at,
          signatures: [],
          nodes: [reported.node],
          disputed: false,
        },
      })
    } else if (kind === 'enrol') {
      const enrolment = BODIES.enrol.safeParse(body)
      if (enrolment.success) reported.enrolled.set(enrolment.data.api_key, enrolment.data)
    } else if (kind === 'revoke') reported.revoked.add(BODIES.revoke.parse(body).api_key)
    else if (kind === 'allocate') reported.keys.push(BODIES.allocate.parse(body))
    else if (kind === 'rule') reported.rules.push(BODIES.rule.parse(body))
    else if (kind === 'void') reported.voided.push(...BODIES.void.parse(body).keys)
  }
  const existing = await knownOf(
    services,
    steps.map(({ step }) => step),
  )
  for (const { height, step } of steps) {
    const state = existing.get(step.id)
    if (state === 'BUILT') reported.built.add(step.id)
    if (state === undefined || state === 'BUILT') reported.steps.set(height, step)
  }
  for (const { kind, body } of entries) {
    if (kind !== 'signed') continue
    const { step_height: height, signatures } = BODIES.signed.parse(body)
    reported.steps.get(height)?.signatures.push(signatures)
  }
}

/** Returns which of the recorded transactions this database has, with their states. */
export async function knownOf(
  services: Pick<Services, 'database'>,
  steps: readonly Recorded[],
): Promise<Map<string, string>> {
  if (steps.length === 0) return new Map()
  // Only parts of the column are read: an unsigned transaction contains the transactions that it
  // spends, which can be megabytes.
  const rows = await services.database.query<{
    workspace: string
    network: string
    bytes: string
    paths: number[][]
    state: string
  }>(
    `select w.name workspace, c.unsigned->>'network' network, c.unsigned->>'bytes' bytes,
       jsonb_path_query_array(c.unsigned, '$.inputs[*].path') paths, c.state
     from chain_transactions c join workspaces w on w.id = c.workspace_id
     where c.unsigned->>'bytes' = any($1) order by c.state = 'BUILT', c.attempt desc`,
    [steps.map(({ unsigned }) => unsigned.bytes)],
  )
  return new Map(
    rows.map(({ workspace, network, bytes, paths, state }) => [
      idOf(workspace, network, bytes, paths),
      state,
    ]),
  )
}

/** Stores how far the records were compared, once they contain nothing unknown. */
export async function saveMarks(
  services: Pick<Services, 'environment' | 'database'>,
  marks: readonly Mark[],
): Promise<void> {
  for (const mark of marks) {
    await services.database.query(
      `insert into signer_marks (node, generation, height, hash, compared_at)
        values ($1, $2, $3, $4, $5)
       on conflict (node) do update set generation = excluded.generation, height = excluded.height,
         hash = excluded.hash,
         compared_at = excluded.compared_at`,
      [mark.node, mark.generation, mark.height, mark.hash, new Date(services.environment.now())],
    )
  }
}

import { parsePublicKey, AuthError } from '@custody/request-auth'
import { validateAddress } from '@custody/chains'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { z } from 'zod'
import { status } from '../api/index.ts'
import { hex } from '../canonical.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { reason } from '../log.ts'
import { answer, parseBody, readText } from '../transport/body.ts'
import { DAY_S } from '../policy/age.ts'
import type { Parts } from '../node.ts'

const enrolSchema = z.strictObject({
  api_key: z.string().min(1).max(128),
  public_key_pem: z.string().max(16_384),
  role: z.enum(['full', 'read-only']),
  workspace: z.string().min(1).max(128),
  // 0 is the workspace's gas tank and belongs to no caller.
  sub_account: z.int().min(1).max(0x7fffffff),
})
const revokeSchema = z.strictObject({ api_key: z.string().min(1).max(128) })
const drainSchema = z.strictObject({ workspace: z.string().min(1).max(128), network: z.string().max(32), to_address: z.string().max(256), order: z.string().min(1).max(64).optional() })

const tankStakeSchema = z.strictObject({
  workspace: z.string().min(1).max(128), network: z.string().max(32), action: z.enum(['stake', 'unstake', 'release']),
  resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(), amount: z.string().regex(/^(0|[1-9][0-9]{0,18})$/), order: z.string().min(1).max(64).optional(),
}).refine((body) => (body.action === 'release') === (body.resource === null) && (body.action === 'release') === (body.amount === '0'), 'a release names neither resource nor amount')

/** How long an order about a tank stands. */
const DRAIN_S = 7 * DAY_S

type Command = (parts: Parts, body: unknown) => Promise<unknown> | unknown

function shaped<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new Refusal('BAD_ORDER', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'has another shape'}`.slice(0, 300))
}

/** Rule 1: who may ask for payments is said here and nowhere else. */
function enrol({ store }: Parts, body: unknown): unknown {
  const wanted = shaped(enrolSchema, body)
  try {
    parsePublicKey(wanted.public_key_pem)
  } catch (error) {
    if (error instanceof AuthError) throw new Refusal('BAD_REQUEST_FIELD', `public_key_pem ${error.message}`)
    throw error
  }
  const known = store.state.enrolments.get(wanted.api_key)
  if (known) {
    if (known.revoked) throw new Refusal('ENROLMENT_CONFLICT', 'The API key is revoked, for ever')
    const same = known.public_key_pem.trim() === wanted.public_key_pem.trim() && known.role === wanted.role && known.workspace === wanted.workspace && known.sub_account === wanted.sub_account
    if (!same) throw new Refusal('ENROLMENT_CONFLICT', 'The API key is enrolled otherwise; an enrolment is immutable')
    return { enrolled: true, new: false }
  }
  store.append('enrol', wanted)
  return { enrolled: true, new: true }
}

function revoke({ store }: Parts, body: unknown): unknown {
  const { api_key } = shaped(revokeSchema, body)
  const known = store.state.enrolments.get(api_key)
  if (!known) throw new Refusal('NOT_ENROLLED', 'The API key is not enrolled at this node')
  if (!known.revoked) store.append('revoke', { api_key })
  return { revoked: true }
}

/** Rule 15. The same `order` is given to each node; without one the node makes it. */
function drain({ store, registry, environment }: Parts, body: unknown): unknown {
  const { workspace, network: code, to_address, order } = shaped(drainSchema, body)
  const network = registry.network(code)
  if (!network) throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
  const to = validateAddress(registry, network.native_asset, to_address)
  if (!to.valid) throw new Refusal('BAD_REQUEST_FIELD', `to_address: ${to.reason}`)
  const id = order ?? hex(environment.random(16))
  const known = store.state.drains.get(id)
  if (known) {
    if (known.workspace !== workspace || known.network !== code || known.to_address !== to.address) throw new Refusal('ENROLMENT_CONFLICT', 'This order id stands for another drain')
    return { order: id, expires_at: known.expires_at }
  }
  const expires_at = store.seconds() + DRAIN_S
  store.append('drain', { order: id, workspace, network: code, to_address: to.address, expires_at })
  return { order: id, expires_at }
}

/** Rule 15, for the stake of a tank. Amount in the smallest unit. */
function tankStake({ store, registry, environment }: Parts, body: unknown): unknown {
  const { order, ...wanted } = shaped(tankStakeSchema, body)
  if (registry.network(wanted.network)?.family !== 'tron') throw new Refusal('NETWORK_MISMATCH', `Nothing is staked on ${wanted.network}`)
  const id = order ?? hex(environment.random(16))
  const known = store.state.tankStakes.get(id)
  if (known) {
    const { order: _, expires_at, ...given } = known
    if ((Object.keys(wanted) as (keyof typeof wanted)[]).some((name) => wanted[name] !== given[name])) throw new Refusal('ENROLMENT_CONFLICT', 'This order id stands for something else')
    return { order: id, expires_at }
  }
  const expires_at = store.seconds() + DRAIN_S
  store.append('tank-stake', { order: id, ...wanted, expires_at })
  return { order: id, expires_at }
}

const commands: Record<string, Command> = {
  status: (parts) => ({ ...status(parts), enrolled: [...parts.store.state.enrolments.values()].map(({ api_key, role, workspace, sub_account, revoked }) => ({ api_key, role, workspace, sub_account, revoked })) }),
  enrol,
  revoke,
  drain,
  'tank-stake': tankStake,
  bans: ({ store }) => ({ bans: [...store.state.bans].map(([node, ban]) => ({ node, ...ban })) }),
  backup: (parts, body) => parts.backups.backup(body),
  restore: (parts, body) => parts.backups.restore(body),
  refresh: (parts, body) => parts.refresher.command(body),
}

/** The operator's own entrance: a unix socket only its user may open. `POST /<command>` with a JSON body. */
export function openOperator(parts: Parts): Server {
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const name = (request.url ?? '').slice(1)
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined
      if (!command || (request.method !== 'POST' && !(request.method === 'GET' && name === 'status'))) throw new Refusal('NOT_FOUND', 'No such command')
      const text = request.method === 'POST' ? await readText(request, 256 * 1024 * 1024) : ''
      answer(response, 200, JSON.stringify(await command(parts, text === '' ? {} : parseBody(text))))
    }
    handle().catch((error: unknown) => {
      const { status: code, body } = errorAnswer(error)
      if (code === 500) parts.log('error', 'unexpected error', { command: (request.url ?? '').slice(0, 50), reason: reason(error) })
      answer(response, code, JSON.stringify(body))
    })
  })
  return server
}

/** Binds the socket; a file left by a killed process is replaced, one that answers is not. */
export async function listenOperator(server: Server, path: string): Promise<void> {
  const alive = await new Promise<boolean>((resolve) => {
    const probe = connect(path)
    probe.on('connect', () => { probe.destroy(); resolve(true) })
    probe.on('error', () => { resolve(false) })
  })
  if (alive) throw new Error(`Another process answers at ${path}`)
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    const mask = process.umask(0o077)
    server.once('error', reject)
    server.listen(path, () => { chmodSync(path, 0o600); resolve() })
    process.umask(mask)
  })
}

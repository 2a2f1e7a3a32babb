import { chmodSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { status } from '../api/index.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { createServer } from '../http.ts'
import { reason } from '../log.ts'
import { answer, parseBody, readText } from '../transport/body.ts'
import type { NodeContext } from '../node-context.ts'
import { ban, bans } from './bans.ts'
import { enrol, enrolment, revoke, reported } from './enrol.ts'
import { ensureSocketFolder } from './socket-folder.ts'
import { recover, recoverSign } from './recover.ts'
import { drain, order, tankStake } from './orders.ts'
import {
  acceptPolicy,
  cancelReset,
  confirmPolicy,
  followPolicy,
  installPolicy,
  presentByOperator,
  resetPolicy,
  showPolicy,
  uninstallPolicy,
} from './policy.ts'

type Command = (parts: NodeContext, body: unknown) => Promise<unknown> | unknown

const commands: Record<string, Command> = {
  status: (parts) => ({
    ...status(parts),
    enrolled: [...parts.store.state.enrolments.values()].map((each) => reported(parts, each)),
  }),
  enrol,
  enrolment,
  revoke,
  drain,
  'tank-stake': tankStake,
  order,
  ban,
  bans,
  backup: (parts, body) => parts.backups.backup(body),
  restore: (parts, body) => parts.backups.restore(body),
  'recover-open': (parts, body) => parts.backups.open(body),
  recover,
  'recover-sign': recoverSign,
  'policy-install': installPolicy,
  'policy-show': showPolicy,
  'policy-present': presentByOperator,
  'policy-confirm': confirmPolicy,
  'policy-accept': acceptPolicy,
  'policy-follow': followPolicy,
  'policy-uninstall': uninstallPolicy,
  'policy-reset': resetPolicy,
  'policy-reset-cancel': cancelReset,
  refresh: (parts, body) => parts.refresher.command(body),
}

/**
 * Orders that are recorded or signed with a time, so they need a trusted clock. A restoration is
 * not included, because it queries the peers itself.
 */
const BY_THE_CLOCK = new Set([
  'drain',
  'tank-stake',
  'recover',
  'recover-sign',
  'policy-install',
  'policy-present',
  'policy-confirm',
  'policy-reset',
])

/**
 * Opens the operator socket: a Unix socket that only its user can connect to. `POST /<command>`
 * with a JSON body.
 */
export function openOperator(parts: NodeContext): Server {
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const name = (request.url ?? '').slice(1)
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined
      if (
        !command ||
        (request.method !== 'POST' && !(request.method === 'GET' && name === 'status'))
      ) {
        throw new Refusal('NOT_FOUND', 'This command does not exist')
      }
      if (BY_THE_CLOCK.has(name)) await parts.hostClock.settle()
      const text = request.method === 'POST' ? await readText(request, 256 * 1024 * 1024) : ''
      answer(
        response,
        200,
        JSON.stringify(await command(parts, text === '' ? {} : parseBody(text))),
      )
    }
    handle().catch((error: unknown) => {
      const { status: code, body } = errorAnswer(error)
      if (code === 500)
        parts.log('error', 'unexpected error', {
          command: (request.url ?? '').slice(0, 50),
          reason: reason(error),
        })
      answer(response, code, JSON.stringify(body))
    })
  })
  return server
}

/**
 * Binds the socket. A file that a killed process left behind is replaced; a socket that responds is
 * not.
 */
export async function listenOperator(server: Server, path: string): Promise<void> {
  ensureSocketFolder(path)
  const alive = await new Promise<boolean>((resolve) => {
    const probe = connect(path)
    probe.on('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.on('error', () => {
      resolve(false)
    })
  })
  if (alive) throw new Error(`Another process responds at ${path}`)
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    const mask = process.umask(0o077)
    server.once('error', reject)
    server.listen(path, () => {
      chmodSync(path, 0o600)
      resolve()
    })
    process.umask(mask)
  })
}

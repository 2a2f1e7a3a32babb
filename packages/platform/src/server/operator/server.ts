import { createHash } from 'node:crypto'
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { readRoleHealth } from '../app/health/role-health.ts'
import { recordedAudit } from '../audit/recorded.ts'
import { ApiError } from '../../core/errors.ts'
import { createPrivateFolder } from '../../core/data-dir.ts'
import type { Application } from '../app/application.ts'
import { adoptIntoBooks } from './books/adopt.ts'
import { releaseDeposit } from './aml-release.ts'
import { createApiUser, listApiUsers, revokeApiUser } from './api-users.ts'
import { OperatorError, type Command } from './command.ts'
import { giveDecision, listOpenApprovals, showApproval } from './policy/approvals.ts'
import { provePossessionOf, proposePolicy } from './policy/changes.ts'
import { policyHistory } from './policy/history.ts'
import { policySurroundings } from './policy/surroundings.ts'
import { exportAuditLog, inviteToConsole, listConsolePeople, resetPerson } from './console.ts'
import { doctorFacts } from './doctor/database.ts'
import { eventsAfter } from './events/events.ts'
import { reconcileOutcome, startReconcile } from './books/reconcile.ts'
import { endRescan, rescanProgress, startRescan } from './books/rescan.ts'
import {
  list as listReserves,
  publish as publishReserves,
  show as showReserves,
} from './reserves.ts'
import { setSweep, showSweep } from './sweeps.ts'
import { assignSuspense, listSuspense } from './books/suspense.ts'
import { adjustPrepaidFee, showPrepaidFee } from './prepaid-fee.ts'
import { triggerEvent } from './events/trigger.ts'
import { stakeTank } from './gas-tanks/staking.ts'
import { listWaiting } from './waiting.ts'
import { listWallets, setWallet } from './wallets.ts'
import {
  drainTank,
  listTanks,
  setTank,
  tankAddress,
  transactionState,
} from './gas-tanks/gas-tanks.ts'

const SOCKET_LENGTH_MAX = 100
const BODY_BYTES_MAX = 1024 * 1024

/**
 * Returns the path of the operator socket for a data folder: in the folder, or below the temporary
 * folder if the path would be too long.
 */
function operatorSocket(home: string): string {
  const path = join(home, 'operator.sock')
  return Buffer.byteLength(path) <= SOCKET_LENGTH_MAX
    ? path
    : join(
        tmpdir(),
        `custody-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`,
        'platform.sock',
      )
}

const COMMANDS: Record<string, Command<Application>> = {
  'aml release': releaseDeposit,
  'approval give': giveDecision,
  'approval list': listOpenApprovals,
  'approval show': showApproval,
  'approval prove': provePossessionOf,
  'api-user create': createApiUser,
  'api-user list': listApiUsers,
  'api-user revoke': revokeApiUser,
  'audit-log export': exportAuditLog,
  'console invite': inviteToConsole,
  'console people': listConsolePeople,
  'console reset': resetPerson,
  'gas-tank list': listTanks,
  'gas-tank address': tankAddress,
  'gas-tank drain': drainTank,
  'gas-tank set': setTank,
  'gas-tank stake': stakeTank,
  'policy history': policyHistory,
  'policy propose': proposePolicy,
  'policy surroundings': policySurroundings,
  'prepaid-fee adjust': adjustPrepaidFee,
  'prepaid-fee show': showPrepaidFee,
  'rescan start': startRescan,
  'rescan progress': rescanProgress,
  'rescan stop': endRescan,
  'reserves list': listReserves,
  'reserves publish': publishReserves,
  'reserves show': showReserves,
  'suspense list': listSuspense,
  'suspense assign': assignSuspense,
  'suspense adopt': adoptIntoBooks,
  'sweep set': setSweep,
  'sweep show': showSweep,
  waiting: listWaiting,
  'wallet list': listWallets,
  'wallet set': setWallet,
  transaction: transactionState,
  trigger: triggerEvent,
  'reconcile start': startReconcile,
  'reconcile outcome': reconcileOutcome,
  events: eventsAfter,
  doctor: doctorFacts,
  'failing loops': async (services) => ({ failing: (await readRoleHealth(services)).failing }),
  audit: async (services) => ({ ...(await recordedAudit(services)) }),
  devnet: async (services, input) => {
    if (!services.devnet)
      throw new OperatorError('the local chains exist only with CUSTODY_NETWORK=local')
    try {
      return await services.devnet(input)
    } catch (error) {
      throw new OperatorError(reasonOf(error))
    }
  },
  'signer status': async (services) => ({
    nodes: await Promise.all(
      services.signers.peers.map(({ node }) =>
        services.signers
          .call<Record<string, unknown>>(node, 'GET', '/status', undefined, 3000)
          .catch((error: Error) => ({ node, ready: false, error: error.message })),
      ),
    ),
  }),
}

/**
 * Commands that are allowed while the platform is on hold: they change nothing, or bring an
 * outdated database up to date.
 */
const WHILE_HELD = new Set([
  'api-user list',
  'api-user revoke',
  'api-user enrolment',
  'approval list',
  'approval show',
  'gas-tank list',
  'policy history',
  'policy surroundings',
  'prepaid-fee show',
  'suspense list',
  'sweep show',
  'waiting',
  'wallet list',
  'reserves list',
  'reserves show',
  'console people',
  'console reset',
  'audit-log export',
  'transaction',
  'events',
  'doctor',
  'failing loops',
  'audit',
  'devnet',
  'signer status',
  'reconcile start',
  'reconcile outcome',
  'rescan progress',
  'rescan stop',
])

/** Opens the operator socket: HTTP on a Unix socket that only this user can connect to. */
export async function startOperatorServer(
  services: Application,
): Promise<{ close(): Promise<void> }> {
  const path = operatorSocket(services.settings.home)
  if (dirname(path) !== services.settings.home) createPrivateFolder(dirname(path))
  rmSync(path, { force: true })
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES_MAX) chunks.push(chunk)
    })
    request.on('end', () => {
      void answer(services, Buffer.concat(chunks).toString('utf8')).then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  chmodSync(path, 0o600)
  writeFileSync(join(services.settings.home, 'operator.path'), path, { mode: 0o600 })
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(
  services: Application,
  text: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  try {
    const { command, input } = JSON.parse(text) as {
      command: string
      input?: Record<string, unknown>
    }
    const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
    if (!run) throw new OperatorError(`unknown command ${command}`)
    // A sub-account created in an outdated database would get the keys of an existing one.
    if (!WHILE_HELD.has(command)) services.hold.assertNone()
    return { status: 200, body: await run(services, input ?? {}) }
  } catch (error) {
    if (error instanceof OperatorError || error instanceof ApiError)
      return { status: 400, body: { error: error.message } }
    services.log.error({ err: error }, 'an operator command failed')
    return { status: 500, body: { error: reasonOf(error) } }
  }
}

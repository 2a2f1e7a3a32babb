import { createHash } from 'node:crypto'
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { readRoleHealth } from '../app/health/role-health.ts'
import { recordedAudit } from '../audit/recorded.ts'
import { ApiError } from '../../core/errors.ts'
import type { Audited } from '../../core/http/endpoint.ts'
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
import {
  exportAuditLog,
  verifyStoredLogs,
  inviteToConsole,
  listConsolePeople,
  resetPerson,
} from './console.ts'
import { writeOffWallet } from './books/write-off.ts'
import { acceptReorg, trustEndpoints } from './endpoints.ts'
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
import { exportStatement } from './statements.ts'
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

const controlChains: Command<Pick<Application, 'devnet'>> = async (services, input) => {
  if (!services.devnet)
    throw new OperatorError('the local chains exist only with CUSTODY_NETWORK=local')
  try {
    return await services.devnet(input)
  } catch (error) {
    throw new OperatorError(reasonOf(error))
  }
}

const signerStatus: Command<Pick<Application, 'signers'>> = async ({ signers }) => ({
  nodes: await Promise.all(
    signers.peers.map(({ node }) =>
      signers
        .call<Record<string, unknown>>(node, 'GET', '/status', undefined, 3000)
        .catch((error: Error) => ({ node, ready: false, error: error.message })),
    ),
  ),
})

/** Operator commands. `reads`: the command changes nothing. */
export const COMMANDS: Record<string, { run: Command<Application>; audit: 'reads' | Audited }> = {
  'aml release': { run: releaseDeposit, audit: 'entry' },
  'approval give': {
    run: giveDecision,
    audit: { not: 'the decision is stored with the signature of a person' },
  },
  'approval list': { run: listOpenApprovals, audit: 'reads' },
  'approval show': { run: showApproval, audit: 'reads' },
  'approval prove': {
    run: provePossessionOf,
    audit: { not: 'the proof is stored with the change that it belongs to' },
  },
  'api-user create': { run: createApiUser, audit: 'entry' },
  'api-user list': { run: listApiUsers, audit: 'reads' },
  'api-user revoke': { run: revokeApiUser, audit: 'entry' },
  'audit-log export': { run: exportAuditLog, audit: 'reads' },
  'audit-log verify': { run: verifyStoredLogs, audit: 'reads' },
  'console invite': { run: inviteToConsole, audit: 'entry' },
  'console people': { run: listConsolePeople, audit: 'reads' },
  'console reset': { run: resetPerson, audit: 'entry' },
  'gas-tank list': { run: listTanks, audit: 'reads' },
  'gas-tank address': { run: tankAddress, audit: 'reads' },
  'gas-tank drain': { run: drainTank, audit: 'entry' },
  'gas-tank set': { run: setTank, audit: 'entry' },
  'gas-tank stake': { run: stakeTank, audit: 'entry' },
  'policy history': { run: policyHistory, audit: 'reads' },
  'policy propose': {
    run: proposePolicy,
    audit: {
      not: 'the change is stored with its history, and applies only after people have approved it',
    },
  },
  'policy surroundings': { run: policySurroundings, audit: 'reads' },
  'prepaid-fee adjust': { run: adjustPrepaidFee, audit: 'entry' },
  'prepaid-fee show': { run: showPrepaidFee, audit: 'reads' },
  'rescan start': {
    run: startRescan,
    audit: { not: 'blocks are read again, and each deposit that is found is booked as usual' },
  },
  'rescan progress': { run: rescanProgress, audit: 'reads' },
  'rescan stop': { run: endRescan, audit: { not: 'it ends what has changed nothing yet' } },
  'reserves list': { run: listReserves, audit: 'reads' },
  'reserves publish': {
    run: publishReserves,
    audit: { not: 'the statement is stored and signed' },
  },
  'reserves show': { run: showReserves, audit: 'reads' },
  'suspense list': { run: listSuspense, audit: 'reads' },
  'suspense assign': { run: assignSuspense, audit: 'entry' },
  'suspense adopt': { run: adoptIntoBooks, audit: 'entry' },
  'sweep set': { run: setSweep, audit: 'entry' },
  'sweep show': { run: showSweep, audit: 'reads' },
  waiting: { run: listWaiting, audit: 'reads' },
  'write-off': { run: writeOffWallet, audit: 'entry' },
  'wallet list': { run: listWallets, audit: 'reads' },
  statement: { run: exportStatement, audit: 'reads' },
  'wallet set': { run: setWallet, audit: 'entry' },
  transaction: { run: transactionState, audit: 'reads' },
  trigger: { run: triggerEvent, audit: { not: 'the events are tests, in the local mode only' } },
  'reconcile start': {
    run: startReconcile,
    audit: { not: 'what is adopted is on the records of the signer nodes' },
  },
  'reconcile outcome': { run: reconcileOutcome, audit: 'reads' },
  'chain accept-reorg': { run: acceptReorg, audit: 'entry' },
  'endpoint trust': { run: trustEndpoints, audit: 'entry' },
  events: { run: eventsAfter, audit: 'reads' },
  doctor: { run: doctorFacts, audit: 'reads' },
  'failing loops': {
    run: async (services) => ({ failing: (await readRoleHealth(services)).failing }),
    audit: 'reads',
  },
  audit: { run: async (services) => ({ ...(await recordedAudit(services)) }), audit: 'reads' },
  devnet: { run: controlChains, audit: { not: 'it exists in the local mode only' } },
  'signer status': { run: signerStatus, audit: 'reads' },
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
  'statement',
  'reserves list',
  'reserves show',
  'console people',
  'console reset',
  'audit-log export',
  'audit-log verify',
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
    const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command]!.run : undefined
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

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodePeer } from '../../core/signing/nodes.ts'
import { identityFolder } from '../../core/data-dir.ts'
import { OperatorError } from './command.ts'

/**
 * Loaded on demand: importing this module would load its dependencies too, such as fetch and
 * WebSocket, which take half of a command's time.
 */
const { request } = process.getBuiltinModule('node:http')

const TIMEOUT_MS = 120_000

function post(
  socketPath: string,
  path: string,
  body: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    // A new connection is used, because the other side may have closed a reused one.
    const outgoing = request(
      {
        agent: false,
        socketPath,
        path,
        method: 'POST',
        timeout: TIMEOUT_MS,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          let answer: Record<string, unknown>
          try {
            answer = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>
          } catch {
            return reject(new Error(`status ${String(response.statusCode)} without JSON`))
          }
          resolve({ status: response.statusCode ?? 0, body: answer })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.on('timeout', () =>
      outgoing.destroy(new Error(`no response within ${TIMEOUT_MS / 1000} s`)),
    )
    outgoing.end(body)
  })
}

/** The platform did not respond, so it is unknown whether it executed the request. */
export class PlatformAway extends OperatorError {}

/**
 * Runs a command in the platform that uses this data folder.
 * @throws OperatorError with the platform's own message
 */
export async function callPlatform(
  home: string,
  command: string,
  input: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const file = join(home, 'operator.path')
  const hint = `the platform does not run on ${home}: start it with "npm start", or set CUSTODY_HOME`
  if (!existsSync(file)) throw new PlatformAway(hint)
  const answer = await post(
    readFileSync(file, 'utf8'),
    '/',
    JSON.stringify({ command, input }),
  ).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') throw new PlatformAway(hint)
    throw error
  })
  if (answer.status !== 200)
    throw new OperatorError(String(answer.body['error'] ?? `status ${answer.status}`))
  return answer.body
}

/** Returns the signer nodes whose operator socket is on this machine. */
export function localSigners(home: string): NodePeer[] {
  const file = join(identityFolder(home), 'peers.json')
  if (!existsSync(file))
    throw new OperatorError(`${file} does not exist, so no signer nodes are configured there`)
  return (JSON.parse(readFileSync(file, 'utf8')) as { nodes: NodePeer[] }).nodes.filter(
    (node) => node.socket !== undefined,
  )
}

/** Runs a command on a node's operator socket. */
export async function callSigner(
  signer: NodePeer,
  command: string,
  body: Record<string, unknown>,
): Promise<unknown> {
  const answer = await post(signer.socket as string, `/${command}`, JSON.stringify(body)).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED')
        throw new OperatorError(`signer ${signer.node} is not running`)
      throw error
    },
  )
  if (answer.status !== 200)
    throw new OperatorError(
      String(answer.body['message'] ?? answer.body['error'] ?? `status ${answer.status}`),
    )
  return answer.body
}

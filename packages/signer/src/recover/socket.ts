import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'

const TIMEOUT_MS = 120_000

/**
 * Sends a command to the operator socket of a data folder's node.
 * @throws Error with the node's own message
 */
export function askNode(
  home: string,
  command: string,
  body: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { socket } = JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')) as {
    socket: string
  }
  const text = JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const requested = request(
      {
        socketPath: socket,
        path: `/${command}`,
        method: 'POST',
        timeout: TIMEOUT_MS,
        agent: false,
      },
      (response) => {
        let answer = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          answer += chunk
        })
        response.on('error', reject)
        response.on('end', () => {
          const reported = JSON.parse(answer) as Record<string, unknown>
          if (response.statusCode === 200) resolve(reported)
          else {
            const where = reported['node'] === undefined ? '' : `, node ${String(reported['node'])}`
            reject(
              new Error(
                `${String(reported['message'] ?? 'the node rejected the command')} (${String(reported['error'])}${where})`,
              ),
            )
          }
        })
      },
    )
    requested.on('timeout', () => {
      requested.destroy(
        new Error(`the node of ${home} did not respond within ${TIMEOUT_MS / 1000} s`),
      )
    })
    requested.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'ENOENT' || error.code === 'ECONNREFUSED'
          ? new Error(`the node of ${home} is not running`)
          : error,
      )
    })
    requested.end(text)
  })
}

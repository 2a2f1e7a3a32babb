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
    const asked = request(
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
          const told = JSON.parse(answer) as Record<string, unknown>
          if (response.statusCode === 200) resolve(told)
          else {
            const where = told['node'] === undefined ? '' : `, node ${String(told['node'])}`
            reject(
              new Error(
                `${String(told['message'] ?? 'the node rejected the command')} (${String(told['error'])}${where})`,
              ),
            )
          }
        })
      },
    )
    asked.on('timeout', () => {
      asked.destroy(new Error(`the node of ${home} did not respond within ${TIMEOUT_MS / 1000} s`))
    })
    asked.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'ENOENT' || error.code === 'ECONNREFUSED'
          ? new Error(`the node of ${home} is not running`)
          : error,
      )
    })
    asked.end(text)
  })
}

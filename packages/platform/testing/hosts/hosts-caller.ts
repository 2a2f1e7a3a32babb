import { createInterface } from 'node:readline'
import { openDatabase } from '../../src/core/database/pool.ts'

/**
 * Runs on the caller's host. Reads requests from standard input, one JSON object per line, and
 * sends them by HTTP, or to the database as an observer.
 */
interface CallerRequest {
  id: number
  url?: string
  init?: RequestInit
  sql?: string
}

const database = openDatabase(process.argv[2] as string, { max: 2, onError: () => undefined })
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  const { id, url, init, sql } = JSON.parse(line) as CallerRequest
  const answered =
    url === undefined
      ? database.query(sql as string).then((rows) => ({ rows }))
      : fetch(url, { ...init, signal: AbortSignal.timeout(5000) }).then(async (response) => ({
          status: response.status,
          text: await response.text(),
        }))
  answered
    .then(
      (answer) => answer,
      (error: Error) => ({ error: error.message }),
    )
    .then(
      (answer) => {
        process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`)
      },
      () => undefined,
    )
}

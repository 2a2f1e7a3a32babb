// Follows what happens, from where it was left: keeps the id of the last event in a file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { CustodyClient } from '@custody/client'

const {
  CUSTODY_URL = 'http://127.0.0.1:8080',
  CUSTODY_API_KEY = '',
  CUSTODY_KEY = 'my-key.pem',
  CURSOR = 'cursor.txt',
} = process.env
const custody = new CustodyClient({
  baseUrl: CUSTODY_URL,
  apiKey: CUSTODY_API_KEY,
  privateKey: readFileSync(CUSTODY_KEY, 'utf8'),
})

const stop = new AbortController()
process.on('SIGINT', () => stop.abort())
const after = existsSync(CURSOR) ? readFileSync(CURSOR, 'utf8') : undefined
for await (const event of custody.events.stream({
  ...(after ? { after } : {}),
  signal: stop.signal,
})) {
  console.log(`${event.timestamp} ${event.type} ${event.object}`)
  // After it was dealt with: what is not written down comes again.
  writeFileSync(CURSOR, event.id)
}

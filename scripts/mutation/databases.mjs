import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * The databases that the tests of this process have open, collected from the driver, so that a
 * function can be replaced in all of them.
 */
const { Client } = createRequire(join(process.cwd(), 'packages', 'platform', 'package.json'))('pg')
const servers = new Map()
const { connect } = Client.prototype
Client.prototype.connect = function noted(...args) {
  const { host, port, user, password, database } = this.connectionParameters
  servers.set(JSON.stringify([host, port, database]), { host, port, user, password, database })
  return connect.apply(this, args)
}

/**
 * Replaces the function of the same name in each database that has it. A server's default database
 * does not.
 * @returns number of databases, and the reason why one rejected it, or null
 */
export async function defineInEach(text) {
  const name = /create or replace function (\w+)/i.exec(text)?.[1]
  let refused = null
  let databases = 0
  for (const [key, options] of servers) {
    const client = new Client(options)
    client.on('error', () => undefined)
    try {
      await connect.call(client)
    } catch {
      servers.delete(key)
      continue
    }
    try {
      const { rowCount } = await client.query('select 1 from pg_proc where proname = $1', [name])
      if (rowCount > 0) {
        databases++
        await client.query(text)
      }
    } catch (error) {
      refused ??= String(error.message)
    }
    await client.end()
  }
  return { refused, databases }
}

import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The databases that the tests of this process have open, learnt from the driver: a function can be changed in all of them at once. */
const { Client } = createRequire(join(process.cwd(), 'packages', 'platform', 'package.json'))('pg')
const known = new Map()
const { connect } = Client.prototype
Client.prototype.connect = function noted(...given) {
  const { host, port, user, password, database } = this.connectionParameters
  known.set(JSON.stringify([host, port, database]), { host, port, user, password, database })
  return connect.apply(this, given)
}

/** Runs a statement in each of them; one that has ended is forgotten. @returns why a database refused it, or null */
export async function inEach(sql) {
  let refused = null
  for (const [key, options] of known) {
    const client = new Client(options)
    client.on('error', () => undefined)
    try {
      await connect.call(client)
    } catch {
      known.delete(key)
      continue
    }
    try {
      await client.query(sql)
    } catch (error) {
      refused ??= String(error.message)
    }
    await client.end()
  }
  return { refused, databases: known.size }
}

import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import pg from 'pg'
import type { ConnectionPool } from '../../src/core/database/pool.ts'

/** Matches the statements whose plans a connection caches; transaction commands have no plan. */
const PLANNED = /^\s*\(?\s*(select|with|insert|update|delete)\b/i

const names = new Map<string, string | undefined>()

/** Returns a name for each statement, which is the same in all processes of all simulations. */
function nameOf(text: string): string | undefined {
  if (!names.has(text))
    names.set(
      text,
      PLANNED.test(text) ? createHash('sha256').update(text).digest('hex').slice(0, 20) : undefined,
    )
  return names.get(text)
}

/**
 * The connections to one simulation's database. A process holds a connection exclusively from the
 * beginning of a statement or transaction to its end. After that the connection is free, and
 * another process with the same database role may use it next. Connections are shared because loading the metadata and plans of
 * tables in each connection is a large part of a simulation's load on PostgreSQL. No other session
 * state outlives a transaction here.
 */
export class Connections {
  readonly #idle: pg.Client[] = []
  readonly #open = new Set<pg.Client>()
  /** Current lease of each connection. */
  readonly #leases = new Map<pg.Client, Lease>()

  /** Returns the value of `DatabaseOptions.pool` for the process with this name. */
  poolOf(name: string): (config: pg.PoolConfig) => ConnectionPool {
    return (config) =>
      new Pool(
        name,
        () => this.#free(config),
        (client, lease) => this.#leases.set(client, lease),
        (client, isBroken) => {
          this.#released(client, isBroken)
        },
      )
  }

  /**
   * Removes the connections on which a process is in the middle of a statement or transaction, or
   * those of all processes.
   * @param name the process; null: all
   * @returns the process ids of their servers
   */
  end(name: string | null): number[] {
    const ending = [...this.#leases]
      .filter(([, lease]) => name === null || lease.name === name)
      .map(([client]) => client)
    for (const client of ending) this.#open.delete(client)
    return ending.map((client) => (client as unknown as { processID: number }).processID)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((client) => client.end()))
  }

  async #free(config: pg.PoolConfig): Promise<pg.Client> {
    const client = new pg.Client(config)
    // Processes share connections of their own role only.
    const at = this.#idle.findLastIndex(({ user }) => user === client.user)
    if (at >= 0) return this.#idle.splice(at, 1)[0] as pg.Client
    client.on('error', (error) => {
      this.#forget(client)
      this.#leases.get(client)?.emit('error', error)
    })
    client.on('end', () => this.#forget(client))
    client.on('notice', (notice) => this.#leases.get(client)?.emit('notice', notice))
    await client.connect()
    this.#open.add(client)
    return client
  }

  #released(client: pg.Client, isBroken: boolean): void {
    this.#leases.delete(client)
    if (this.#open.has(client) && !isBroken) return void this.#idle.push(client)
    this.#forget(client)
    client.end().catch(() => undefined)
  }

  #forget(client: pg.Client): void {
    this.#open.delete(client)
    const at = this.#idle.indexOf(client)
    if (at >= 0) this.#idle.splice(at, 1)
  }
}

/** A connection that is leased to a process. */
class Lease extends EventEmitter {
  readonly name: string
  readonly #client: pg.Client
  readonly #released: (client: pg.Client, isBroken: boolean) => void

  constructor(
    name: string,
    client: pg.Client,
    released: (client: pg.Client, isBroken: boolean) => void,
  ) {
    super()
    this.name = name
    this.#client = client
    this.#released = released
  }

  query({ text, values }: { text: string; values: unknown[] }): Promise<pg.QueryResult> {
    const name = nameOf(text)
    return this.#client.query({ ...(name === undefined ? {} : { name }), text, values })
  }

  release(isBroken = false): void {
    this.#released(this.#client, isBroken)
  }
}

/** The connection pool of one process. */
class Pool extends EventEmitter {
  readonly #name: string
  readonly #free: () => Promise<pg.Client>
  readonly #leased: (client: pg.Client, lease: Lease) => void
  readonly #released: (client: pg.Client, isBroken: boolean) => void
  readonly #leases = new WeakMap<pg.Client, Lease>()

  constructor(
    name: string,
    free: () => Promise<pg.Client>,
    leased: (client: pg.Client, lease: Lease) => void,
    released: (client: pg.Client, isBroken: boolean) => void,
  ) {
    super()
    this.#name = name
    this.#free = free
    this.#leased = leased
    this.#released = released
  }

  async connect(): Promise<pg.PoolClient> {
    const client = await this.#free()
    const idle = this.#leases.get(client)
    const lease = idle ?? new Lease(this.#name, client, this.#released)
    this.#leased(client, lease)
    this.#leases.set(client, lease)
    if (!idle) this.emit('connect', lease)
    return lease as unknown as pg.PoolClient
  }

  async end(): Promise<void> {
    // Free connections are shared by all processes. A process that ends in the middle of something
    // calls `Connections.end`.
  }
}

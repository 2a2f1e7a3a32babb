import { createServer, type RequestListener, type Server } from 'node:http'
import { clientOf, isLocal, readTrustFile, type Config } from '../config.ts'
import { ApproverError } from '../errors.ts'
import { Documents } from '../verify/documents.ts'
import { placeOf } from '../verify/place.ts'
import { handlerOf } from './handler.ts'
import { platformOf } from './platform.ts'

const LOOPBACK = ['127.0.0.1', '::1']
/** The machine has no IPv6. */
const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/** A running page. */
export interface Running {
  url: string
  close(): Promise<void>
}

function portError(config: Config, host: string, error: NodeJS.ErrnoException): ApproverError {
  if (error.code === 'EADDRINUSE')
    return new ApproverError(
      'PORT_IN_USE',
      isLocal(config)
        ? `another program uses the port ${config.port} on ${host}. It may imitate this page and get your passkey to sign: do not open ${config.origin}, find the program and end it, then start again`
        : `another program uses the port ${config.port} on ${host}: end it, then start again`,
    )
  return new ApproverError(
    'LISTEN',
    `the page cannot listen on ${host}, port ${config.port} (${String(error.code)})`,
  )
}

function listenOn(handler: RequestListener, host: string, port: number): Promise<Server> {
  return new Promise((done, fail) => {
    const server = createServer({ requestTimeout: 30_000, maxHeaderSize: 16_384 }, handler)
    server.once('error', fail)
    server.listen({ host, port, exclusive: true, ipv6Only: host === '::1' }, () => done(server))
  })
}

const closed = (server: Server): Promise<void> =>
  new Promise((done) => {
    server.closeAllConnections()
    server.close(() => done())
  })

/**
 * Listens for the page: without an own host name, on both loopback addresses.
 * @throws ApproverError `PORT_IN_USE` or `LISTEN`
 */
export async function listen(config: Config, handler: RequestListener): Promise<Server[]> {
  const servers: Server[] = []
  for (const host of config.host === null ? LOOPBACK : [config.host]) {
    try {
      servers.push(await listenOn(handler, host, config.port))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (host === '::1' && NO_ADDRESS.has(String(code))) continue
      await Promise.all(servers.map(closed))
      throw portError(config, host, error as NodeJS.ErrnoException)
    }
  }
  return servers
}

/**
 * Serves a person's page until `close`.
 * @param dir folder of the page, with its documents
 * @throws ApproverError
 */
export async function run(dir: string, config: Config): Promise<Running> {
  const trust = readTrustFile(config)
  const handler = handlerOf({
    config,
    place: placeOf(trust, config.platform),
    trust,
    documents: new Documents(dir, config.document_file),
    platform: platformOf(clientOf(config)),
    now: Date.now,
  })
  const servers = await listen(config, handler)
  return {
    url: config.origin,
    async close() {
      await Promise.all(servers.map(closed))
    },
  }
}

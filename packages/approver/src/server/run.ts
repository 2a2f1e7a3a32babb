import { createServer, type RequestListener, type Server } from 'node:http'
import { clientOf, isLocal, readTrustFile, type Config } from '../config.ts'
import { ApproverError } from '../errors.ts'
import { Documents } from '../verify/documents.ts'
import { placeOf } from '../verify/place.ts'
import { FirstLoad, type After } from './first-load.ts'
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

/** How a person opens the page. */
export interface RunOptions {
  /** Prints a line in the terminal. */
  report: (line: string) => void
  /** Opens a URL in a private window, and returns whether it could; null: the person does so. */
  open: ((url: string) => Promise<boolean>) | null
  after?: After
}

const BY_HAND = (origin: string): string[] => [
  `open a private window of your browser (Chrome, Chromium and Edge: Ctrl-Shift-N, Firefox: Ctrl-Shift-P) and enter ${origin} in it`,
  'use the page only in that window, and only after this terminal states that a window has loaded it; otherwise something else shows a page: close the window',
]

/** Opens a page of this machine in a private window, in which no other program has stored anything. */
export async function openPage(
  origin: string,
  { report, open }: Pick<RunOptions, 'report' | 'open'>,
  loaded: FirstLoad,
): Promise<void> {
  if (open !== null && (await open(origin))) {
    report('a private window of your browser opens the page: use it in that window only')
    return loaded.expect()
  }
  for (const line of BY_HAND(origin)) report(line)
}

/**
 * Serves a person's page until `close`, and opens it if it is for this machine only.
 * @param dir folder of the page, with its documents
 * @throws ApproverError
 */
export async function run(dir: string, config: Config, options: RunOptions): Promise<Running> {
  const loaded = new FirstLoad(options.report, config.origin, options.after)
  const trust = readTrustFile(config)
  const services = {
    config,
    place: placeOf(trust, config.platform),
    trust,
    documents: new Documents(dir, config.document_file),
    platform: platformOf(clientOf(config)),
    now: Date.now,
  }
  const isOwn = isLocal(config)
  const onNavigation = isOwn ? () => loaded.note() : undefined
  const servers = await listen(config, handlerOf(services, onNavigation ? { onNavigation } : {}))
  options.report(`the page is at ${config.origin}`)
  if (isOwn) await openPage(config.origin, options, loaded)
  return {
    url: config.origin,
    async close() {
      loaded.close()
      await Promise.all(servers.map(closed))
    },
  }
}

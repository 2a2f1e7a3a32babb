import { reasonOf } from '@custody/chains/reason'
import { CustodyClient, type Trust } from '@custody/client'
import { randomInt } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { ApproverError } from './errors.ts'

/** Settings of one person's page. The file contains paths of secrets, and no secrets. */
export interface Config {
  version: 1
  /** ID of the person in the policy document. */
  person: string
  /** Base URL of the platform. */
  platform: string
  /** API key by which the page reads approvals and sends decisions. */
  api_key: string
  private_key_file: string
  trust_file: string
  /** Policy file or document, to verify approvals without the platform's copy. */
  document_file: string | null
  /** Origin at which the browser opens the page. Passkeys are bound to it. */
  origin: string
  /** Address on which the server listens; null: both loopback addresses. */
  host: string | null
  port: number
}

const FILE = 'approver.json'
/** Below the range from which systems choose ports for outgoing connections. */
const PORT_MIN = 20_000
const PORT_MAX = 49_152
const PORT_ATTEMPTS = 50

const bad = (option: string, message: string): never => {
  throw new ApproverError('OPTION', `--${option}: ${message}`)
}

/** Domain of an origin, to which passkeys are bound. */
export const rpIdOf = ({ origin }: Pick<Config, 'origin'>): string => new URL(origin).hostname

/** Returns whether the page is on this machine only, without an own host name. */
export const isLocal = (config: Pick<Config, 'origin'>): boolean => rpIdOf(config) === 'localhost'

/** Returns whether nothing listens on a port of this machine. */
function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(false))
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)))
  })
}

async function drawPort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt += 1) {
    const port = randomInt(PORT_MIN, PORT_MAX)
    if (await isFree(port)) return port
  }
  throw new ApproverError('PORT', 'no free port was found on this machine')
}

/** Reads a JSON file. @throws ApproverError that names the option */
function readJson(path: string, option: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return bad(option, `the file ${path} cannot be read`)
  }
  try {
    return JSON.parse(text)
  } catch {
    return bad(option, `${path} is not JSON`)
  }
}

export const readTrustFile = ({ trust_file: path }: Pick<Config, 'trust_file'>): Trust =>
  readJson(path, 'trust-file') as Trust

/**
 * Returns the client of a page. It repeats no request for long, because a person waits for it.
 * @throws ApproverError if the key, the trust file or the URL is not valid
 */
export function clientOf(config: Config): CustodyClient {
  let privateKey: string
  try {
    privateKey = readFileSync(config.private_key_file, 'utf8')
  } catch {
    return bad('private-key', `the file ${config.private_key_file} cannot be read`)
  }
  try {
    return new CustodyClient({
      baseUrl: config.platform,
      apiKey: config.api_key,
      privateKey,
      trust: readTrustFile(config),
      timeoutMs: 15_000,
      retry: { attemptsMax: 2 },
      waitOnRateLimit: false,
    })
  } catch (error) {
    if (error instanceof ApproverError) throw error
    throw new ApproverError('OPTION', reasonOf(error))
  }
}

/** Options of `custody approver init`, as typed. */
export interface InitOptions {
  dir: string
  platform: string
  apiKey: string
  privateKey: string
  trustFile: string
  person: string
  origin?: string
  listen?: string
  document?: string
}

function originOf(text: string): string {
  const isOrigin = /^https:\/\/[a-z0-9.-]+(?::[1-9]\d{0,4})?$/.test(text)
  if (!isOrigin || new URL(text).origin !== text)
    bad('origin', 'must be an https origin in lower case, such as https://approve.acme.example')
  return text
}

function listenOf(text: string): { host: string; port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? bad('listen', 'must be HOST:PORT')
  const number = Number(port)
  if (number < 1 || number > 65_535) bad('listen', 'the port must be from 1 to 65535')
  return { host: (host as string).replace(/^\[|\]$/g, ''), port: number }
}

async function placeOf({ origin, listen }: InitOptions) {
  if (origin === undefined) {
    if (listen !== undefined)
      bad('listen', 'requires --origin: without it the page is at http://localhost')
    const port = await drawPort()
    return { origin: `http://localhost:${port}`, host: null, port }
  }
  const chosen = listen === undefined ? { host: '127.0.0.1', port: await drawPort() } : undefined
  return { origin: originOf(origin), ...(chosen ?? listenOf(listen as string)) }
}

/**
 * Writes the settings of a page. An existing file is never replaced, because passkeys are bound to
 * its origin.
 * @throws ApproverError
 */
export async function initialize(options: InitOptions): Promise<Config> {
  const path = join(options.dir, FILE)
  if (existsSync(path))
    bad(
      'dir',
      `${path} already exists, and passkeys are bound to its origin: choose another folder`,
    )
  if (!/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(options.person))
    bad('person', 'must be the ID of a person: 1 to 64 of a-z, 0-9, ".", "_", "-"')
  if (!/^https?:\/\//.test(options.platform) || !URL.canParse(options.platform))
    bad('platform', 'must be an http or https URL')
  if (options.origin === new URL(options.platform).origin)
    bad(
      'origin',
      'must not be the origin of the platform: its passkeys sign in to the control panel, so every sign-in could be an approval',
    )
  const config: Config = {
    version: 1,
    person: options.person,
    platform: options.platform,
    api_key: options.apiKey,
    private_key_file: resolve(options.privateKey),
    trust_file: resolve(options.trustFile),
    document_file: options.document === undefined ? null : resolve(options.document),
    ...(await placeOf(options)),
  }
  clientOf(config)
  mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  writeFileSync(path, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  return config
}

/** Reads the settings of a page. @throws ApproverError if `init` has not written them */
export function readConfig(dir: string): Config {
  const path = join(dir, FILE)
  if (!existsSync(path))
    bad('dir', `${path} does not exist: create it with "npx custody approver init"`)
  const config = readJson(path, 'dir') as Config
  if (config?.version !== 1 || typeof config.origin !== 'string')
    bad('dir', `${path} is not a file of this version of the approver`)
  return config
}

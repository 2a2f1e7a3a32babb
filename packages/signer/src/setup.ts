import 'reflect-metadata'
import { readKek, type KekSettings } from '@custody/key-encryption'
import { X509CertificateGenerator, cryptoProvider } from '@peculiar/x509'
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { reasonOf } from '@custody/chains/reason'
import type { ConfigFile } from './config.ts'
import { keyFileOf, makeHomeKey } from './kek/home.ts'
import { backupFileSchema, readRecoverySecret } from './keys/backup.ts'
import { openText } from './keys/sealed.ts'

/**
 * Makes homes. local: three nodes and the platform's client identity under one parent, which is not custody.
 * mainnet: one node at a time, on a host of its own; its public half is carried to the others by its operator.
 */
export interface SetupOptions {
  home: string
  ports: readonly number[]
  mode: 'local' | 'mainnet'
  node?: number
  peers?: string
  /** Who wraps the keys of the homes; local: a file of the home, mainnet: a passphrase. */
  kek?: KekSettings
  env?: NodeJS.ProcessEnv
}

/** The public half of a node or of the platform: what the others pin. */
interface PublicHalf { node: number; host: string; port: number; certificate: string; identity: string }

export class SetupError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SetupError'
  }
}

const HOST = '127.0.0.1'
/** sun_path holds 108 bytes, one of them zero. */
const SOCKET_BYTES_MAX = 104

const write = (path: string, text: string): void => {
  const draft = `${path}.draft`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, path)
}

async function makeCertificate(name: string): Promise<{ key: string; certificate: string }> {
  cryptoProvider.set(webcrypto as never)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const now = Date.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(16).toString('hex').replace(/^./, '4'),
    name: `CN=${name}`,
    notBefore: new Date(now - 86_400_000),
    // Peers pin the certificate itself: an early end would protect nothing, and would stop the nodes.
    notAfter: new Date(now + 20 * 365 * 86_400_000),
    signingAlgorithm: algorithm,
    keys: keys as never,
  })
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  return {
    key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate: `${certificate.toString('pem')}\n`,
  }
}

function socketOf(home: string): string {
  const path = join(home, 'operator.sock')
  if (Buffer.byteLength(path) <= SOCKET_BYTES_MAX) return path
  const folder = join(tmpdir(), `custody-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`)
  return join(folder, 'operator.sock')
}

async function makeIdentity(home: string, node: number): Promise<void> {
  if (!existsSync(join(home, 'tls.crt'))) {
    const { key, certificate } = await makeCertificate(`custody signer ${node}`)
    write(join(home, 'tls.key'), key)
    write(join(home, 'tls.crt'), certificate)
  }
  if (!existsSync(join(home, 'identity.pub'))) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    write(join(home, 'identity.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    write(join(home, 'identity.pub'), publicKey.export({ type: 'spki', format: 'pem' }) as string)
  }
}

/** X25519, raw 32 bytes in hex; the secret half never enters the node's home. */
function makeRecovery(): { secret: string; public: string } {
  const { privateKey } = generateKeyPairSync('x25519')
  const jwk = privateKey.export({ format: 'jwk' })
  return {
    secret: Buffer.from(jwk.d!, 'base64url').toString('hex'),
    public: Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x!, 'base64url').toString('hex'),
  }
}

const half = (home: string, node: number, port: number): PublicHalf => ({
  node, host: HOST, port, certificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
  identity: readFileSync(join(home, 'identity.pub'), 'utf8'),
})
const closed = (path: string): string => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700)
  return path
}

const TIMEOUTS = { round: 5000, keygen: 60_000, sign: 30_000 }

async function setupLocal(parent: string, { ports, kek, env = process.env }: SetupOptions): Promise<void> {
  if (ports.length !== 3 || new Set(ports).size !== 3) throw new SetupError('--ports needs three different ports: p1,p2,p3')
  const platform = join(parent, 'platform')
  if (existsSync(join(platform, 'peers.json'))) return
  closed(parent)
  closed(platform)
  const nodes = [1, 2, 3].map((node) => ({ node, home: closed(join(parent, `node-${node}`)), port: ports[node - 1]! }))
  if (!existsSync(join(platform, 'tls.crt'))) {
    const { key, certificate } = await makeCertificate('custody platform')
    write(join(platform, 'tls.key'), key)
    write(join(platform, 'tls.crt'), certificate)
  }
  for (const { node, home } of nodes) await makeIdentity(home, node)
  const halves = nodes.map(({ node, home, port }) => half(home, node, port))
  const sockets: Record<number, string> = {}
  for (const { node, home, port } of nodes) {
    const recoveryFile = join(parent, `recovery-${node}`)
    const configFile = join(home, 'config.json')
    if (kek || !existsSync(keyFileOf(home))) await makeHomeKey(home, { node, mode: 'local' }, kek ?? { kind: 'file', path: 'kek' }, env)
    const socket = socketOf(home)
    sockets[node] = socket
    if (socket !== join(home, 'operator.sock')) closed(join(socket, '..'))
    if (existsSync(configFile)) continue
    const recovery = makeRecovery()
    const warning = 'For local use only: elsewhere the recovery key of each node is made and kept offline by a holder of its own.'
    write(recoveryFile, `${JSON.stringify({ warning, node, secret: recovery.secret, public: recovery.public })}\n`)
    const config: ConfigFile = {
      version: 1, node, mode: 'local', host: HOST, port, socket,
      recovery_public_key: recovery.public,
      kek: { kind: 'wrapped' },
      peers: halves.filter((each) => each.node !== node),
      platform_certificate: readFileSync(join(platform, 'tls.crt'), 'utf8'),
      pool: { secp256k1: 2, ed25519: 2 },
      budget_fee_caps: 100,
      timeouts_ms: TIMEOUTS,
    }
    write(configFile, `${JSON.stringify(config, null, 2)}\n`)
  }
  // Last: its presence says that all is made.
  const listed = halves.map((each) => ({
    ...each, url: `https://${each.host}:${each.port}`, socket: sockets[each.node], home: join(parent, `node-${each.node}`),
  }))
  write(join(platform, 'peers.json'), `${JSON.stringify({ version: 1, mode: 'local', nodes: listed }, null, 2)}\n`)
}

/** Where nobody names another provider. */
function passphraseOf(env: NodeJS.ProcessEnv): KekSettings {
  if (!env['CUSTODY_SIGNER_PASSPHRASE_FILE']) {
    throw new SetupError(
      'mainnet needs --kek PROVIDER, or a passphrase: name a file or descriptor (such as /dev/fd/3) in CUSTODY_SIGNER_PASSPHRASE_FILE'
    )
  }
  return { kind: 'passphrase' }
}

/**
 * mainnet, in two calls at each node: the first makes keys and prints the public half; the second, with --peers FILE
 * (public halves of the other two, the platform's certificate and the recovery public key), writes config.json.
 */
async function setupMainnet(home: string, { node, ports, peers, kek, env = process.env }: SetupOptions): Promise<void> {
  if (node === undefined || ![1, 2, 3].includes(node)) {
    throw new SetupError('mainnet is set up one node at a time: --node 1, 2 or 3, on its own host')
  }
  if (ports.length !== 1) throw new SetupError("--ports needs this node's one port")
  if (existsSync(join(home, 'config.json'))) return
  for (const other of [1, 2, 3]) {
    if (existsSync(join(home, `node-${other}`))) {
      throw new SetupError('This home is shared by several nodes; in mainnet each node has a home and a host of its own')
    }
  }
  if (existsSync(join(home, 'kek'))) throw new SetupError('A plain-file key-encryption key is for local only')
  closed(home)
  // The second call need not name again what the first one made.
  if (kek || !existsSync(keyFileOf(home))) await makeHomeKey(home, { node, mode: 'mainnet' }, kek ?? passphraseOf(env), env)
  await makeIdentity(home, node)
  if (!peers) {
    process.stdout.write(`${JSON.stringify(half(home, node, ports[0]!))}\n`)
    return
  }
  const given = JSON.parse(readFileSync(peers, 'utf8')) as {
    peers: PublicHalf[]
    platform_certificate: string
    recovery_public_key: string
  }
  if (!/^[0-9a-f]{64}$/.test(given.recovery_public_key ?? '')) {
    throw new SetupError('--peers FILE must name recovery_public_key: 32 bytes in hex, made offline by its holder')
  }
  const socket = socketOf(home)
  if (socket !== join(home, 'operator.sock')) closed(join(socket, '..'))
  const config: ConfigFile = {
    version: 1, node, mode: 'mainnet', host: HOST, port: ports[0]!, socket,
    recovery_public_key: given.recovery_public_key,
    kek: { kind: 'wrapped' },
    peers: given.peers,
    platform_certificate: given.platform_certificate,
    pool: { secp256k1: 2, ed25519: 2 },
    budget_fee_caps: 10,
    timeouts_ms: TIMEOUTS,
  }
  write(join(home, 'config.json'), `${JSON.stringify(config, null, 2)}\n`)
}

/**
 * A new home for a node whose host is lost: configuration, identity and TLS keys from its backup. Shares and memory
 * come back by the operator's `restore` once the node runs.
 */
export async function restoreHome(
  o: { home: string; file: string; recoverySecretFile: string; kek?: KekSettings; env?: NodeJS.ProcessEnv }
): Promise<void> {
  const home = resolve(o.home)
  if (existsSync(join(home, 'config.json'))) throw new SetupError(`${home} has a configuration already`)
  const backup = backupFileSchema.parse(JSON.parse(readFileSync(o.file, 'utf8')))
  const secret = readRecoverySecret(o.recoverySecretFile)
  let files: Record<string, string>
  try {
    files = JSON.parse(openText(backup.home, secret)) as Record<string, string>
  } catch {
    throw new SetupError('The recovery secret does not open this backup')
  } finally {
    secret.fill(0)
  }
  const config = JSON.parse(files['config.json']!) as ConfigFile
  const env = o.env ?? process.env
  const kek: KekSettings = o.kek ?? (config.mode === 'local' ? { kind: 'file', path: 'kek' } : passphraseOf(env))
  closed(home)
  const socket = socketOf(home)
  if (socket !== join(home, 'operator.sock')) closed(join(socket, '..'))
  // A key of its own: the lost home's died with it, and shares come sealed to the recovery key.
  await makeHomeKey(home, config, kek, env)
  for (const name of ['identity.key', 'identity.pub', 'tls.key', 'tls.crt']) write(join(home, name), files[name]!)
  write(join(home, 'config.json'), `${JSON.stringify({ ...config, kek: { kind: 'wrapped' }, socket }, null, 2)}\n`)
}

export async function setup(options: SetupOptions): Promise<void> {
  const home = resolve(options.home)
  if (options.mode === 'local') {
    if (options.node !== undefined) throw new SetupError('--node is for mainnet; local makes all three')
    await setupLocal(home, options)
  } else await setupMainnet(home, options)
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' }, ports: { type: 'string' }, mode: { type: 'string', default: 'local' }, node: { type: 'string' },
      peers: { type: 'string' }, kek: { type: 'string' }, restore: { type: 'string' }, 'recovery-secret-file': { type: 'string' },
    },
  })
  try {
    const kek = values.kek === undefined ? {} : { kek: readKek('--kek', values.kek) }
    if (values.restore) {
      if (!values.home || !values['recovery-secret-file']) {
        throw new SetupError('usage: setup.ts --home HOME --restore BACKUP --recovery-secret-file FILE [--kek PROVIDER]')
      }
      await restoreHome({ home: values.home, file: values.restore, recoverySecretFile: values['recovery-secret-file'], ...kek })
      process.exit(0)
    }
    if (!values.home || !values.ports) {
      throw new SetupError(
        'usage: setup.ts --home PARENT --ports p1,p2,p3 [--mode local|mainnet] [--node N] [--peers FILE] [--kek PROVIDER]'
      )
    }
    const ports = values.ports.split(',').map(Number)
    if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) throw new SetupError('--ports must be port numbers')
    if (values.mode !== 'local' && values.mode !== 'mainnet') throw new SetupError('--mode is local or mainnet')
    await setup({
      home: values.home, ports, mode: values.mode, ...(values.node ? { node: Number(values.node) } : {}),
      ...(values.peers ? { peers: values.peers } : {}), ...kek,
    })
  } catch (error) {
    process.stderr.write(`setup: ${reasonOf(error)}\n`)
    process.exitCode = 1
  }
}

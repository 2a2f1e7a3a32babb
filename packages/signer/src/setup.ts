import { readKek, type KekSettings } from '@custody/key-encryption'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { byMode, type NetworkMode, hasLocalChains, hasRealCoins } from '@custody/chains/mode'
import { printError, printLines, printNotice } from '@custody/chains/terminal'
import type { ConfigFile } from './config.ts'
import { keyFileOf, createDataDirKey } from './kek/data-dir.ts'
import { readRecoverySecret } from './keys/backup.ts'
import { readBackup } from './keys/backup-file.ts'
import { openText } from './keys/sealed.ts'
import { fingerprintsOf } from './fingerprints.ts'
import { passphraseOf, setupNode, setupRecovery } from './set-up/separate-hosts.ts'
import { named } from './set-up/check.ts'
import { checkHome, modeOf, runPlatformSetup, print } from './set-up/command.ts'
import { repairClock } from './set-up/repair-clock.ts'
import {
  closed,
  makeIdentity,
  makeRecovery,
  makeTls,
  SetupError,
  socketOf,
  BUDGET_FEE_CAPS,
  TIMEOUTS,
  write,
  writeJson,
} from './set-up/files.ts'

/**
 * Three data folders and the platform's client identity in one parent folder on one machine. Such
 * an installation is not secure custody, so it is not possible with mode mainnet.
 */
export interface SetupOptions {
  home: string
  ports: readonly number[]
  mode: NetworkMode
  /** Provider that wraps the keys of the data folders; absent: a file in each data folder. */
  kek?: KekSettings
  env?: NodeJS.ProcessEnv
}

// Other users can read no file that the set-up creates.
process.umask(0o077)

const HOST = '127.0.0.1'

const half = (home: string, node: number, port: number) => ({
  node,
  host: HOST,
  port,
  certificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
  identity: readFileSync(join(home, 'identity.pub'), 'utf8'),
})

async function setupLocal(
  parent: string,
  { ports, mode, kek, env = process.env }: SetupOptions,
): Promise<void> {
  if (ports.length !== 3 || new Set(ports).size !== 3)
    throw new SetupError('--ports: must be three different port numbers: p1,p2,p3')
  const platform = join(parent, 'platform')
  if (existsSync(join(platform, 'peers.json'))) return
  closed(parent)
  closed(platform)
  const nodes = [1, 2, 3].map((node) => ({
    node,
    home: closed(join(parent, `node-${node}`)),
    port: ports[node - 1]!,
  }))
  await makeTls(platform, 'custody platform')
  for (const { node, home } of nodes) await makeIdentity(home, node)
  const halves = nodes.map(({ node, home, port }) => half(home, node, port))
  const sockets: Record<number, string> = {}
  for (const { node, home, port } of nodes) {
    const recoveryFile = join(parent, `recovery-${node}`)
    const configFile = join(home, 'config.json')
    if (kek || !existsSync(keyFileOf(home)))
      await createDataDirKey(home, { node, mode }, kek ?? { kind: 'file', path: 'kek' }, env)
    const socket = socketOf(home)
    sockets[node] = socket
    if (existsSync(configFile)) continue
    const recovery = makeRecovery()
    const warning =
      'For local use only: elsewhere, the recovery key of each node is generated and kept offline by a separate holder.'
    write(
      recoveryFile,
      `${JSON.stringify({ warning, node, secret: recovery.secret, public: recovery.public })}\n`,
    )
    const config: ConfigFile = {
      version: 1,
      node,
      mode,
      host: HOST,
      port,
      socket,
      recovery_public_key: recovery.public,
      kek: { kind: 'wrapped' },
      peers: halves.filter((each) => each.node !== node),
      platform_certificate: readFileSync(join(platform, 'tls.crt'), 'utf8'),
      pool: { secp256k1: 2, ed25519: 2 },
      budget_fee_caps: byMode(mode, BUDGET_FEE_CAPS),
      timeouts_ms: TIMEOUTS,
    }
    writeJson(configFile, config)
  }
  // Written last, because its presence shows that the set-up is complete.
  const listed = halves.map((each) => ({
    ...each,
    url: `https://${each.host}:${each.port}`,
    socket: sockets[each.node],
    home: join(parent, `node-${each.node}`),
  }))
  writeJson(join(platform, 'peers.json'), { version: 1, mode, nodes: listed })
}

export interface RestoreHome {
  home: string
  file: string
  recoverySecretFile: string
  /**
   * The node's fingerprint, as noted by its operator or reported by another node. Null: only in
   * `local` mode.
   */
  print: string | null
  kek?: KekSettings
  env?: NodeJS.ProcessEnv
}

const homeFilesSchema = z.object({
  'config.json': z.string(),
  'identity.key': z.string(),
  'identity.pub': z.string(),
  'tls.key': z.string(),
  'tls.crt': z.string(),
})

/**
 * Checks that each private key belongs to the public key next to it.
 * @throws SetupError if it does not
 */
function assertPairs(files: z.infer<typeof homeFilesSchema>): void {
  const publicOf = (pem: string): string =>
    createPublicKey(pem).export({ type: 'spki', format: 'pem' }) as string
  const isPair =
    publicOf(files['identity.key']) === publicOf(files['identity.pub']) &&
    publicOf(files['tls.key']) ===
      (new X509Certificate(files['tls.crt']).publicKey.export({
        type: 'spki',
        format: 'pem',
      }) as string)
  if (!isPair)
    throw new SetupError(
      'The backup contains a private key that does not match its public half: use another copy',
    )
}

/**
 * Anyone can encrypt for a recovery key, so the content may come from anyone; the fingerprint
 * proves its origin.
 */
function openHome({ file, recoverySecretFile, print }: RestoreHome) {
  const backup = readBackup(file)
  const secret = readRecoverySecret(recoverySecretFile)
  let files: z.infer<typeof homeFilesSchema>
  try {
    files = homeFilesSchema.parse(JSON.parse(openText(backup.content.home, secret)))
  } catch {
    throw new SetupError('The recovery secret does not decrypt this backup')
  } finally {
    secret.fill(0)
  }
  assertPairs(files)
  const config = JSON.parse(files['config.json']) as ConfigFile
  const own = { node: config.node, certificate: files['tls.crt'], identity: files['identity.pub'] }
  const prints = fingerprintsOf({ own, peers: config.peers, platform: config.platform_certificate })
  const its = prints[String(config.node)] as string
  if (print === null && needsPrint(config.mode)) {
    throw new SetupError(
      `--print: is required for ${config.mode}: this node's fingerprint, as you noted it or as custody setup --check prints it at another node`,
    )
  }
  // The fingerprint may be entered with or without hyphens.
  if (print !== null && print.toLowerCase().replaceAll(/[\s-]/g, '') !== its.replaceAll('-', '')) {
    throw new SetupError(
      '--print: the backup belongs to a node with another fingerprint, so another node or another person made it. Use a backup of this node',
    )
  }
  if (config.node !== backup.content.node)
    throw new SetupError(
      'The backup contains the home of another node than it states: use another copy',
    )
  if (backup.content.version === 2 && !backup.isSignedBy(createPublicKey(files['identity.key']))) {
    throw new SetupError(`${file} was changed after it was made: use another copy`)
  }
  return { files, config, prints, isSigned: backup.content.version === 2 }
}

/**
 * Creates a new data folder for a node whose host is lost: configuration, identity and TLS keys
 * come from its backup. The operator's `restore` restores shares and record when the node runs.
 * @returns the fingerprints in the data folder
 */
export async function restoreHome(
  o: RestoreHome,
): Promise<{ prints: Record<string, string>; isSigned: boolean }> {
  const home = resolve(o.home)
  if (existsSync(join(home, 'config.json')))
    throw new SetupError(`${home} already has a configuration`)
  const { files, config, ...reported } = openHome(o)
  const env = o.env ?? process.env
  const kek: KekSettings =
    o.kek ??
    byMode<() => KekSettings>(config.mode, {
      local: () => ({ kind: 'file', path: 'kek' }),
      regtest: () => passphraseOf(env),
      mainnet: () => passphraseOf(env),
    })()
  closed(home)
  const socket = socketOf(home)
  // A new key, because that of the lost data folder is lost too; shares are encrypted for the
  // recovery key.
  await createDataDirKey(home, config, kek, env)
  for (const name of ['identity.key', 'identity.pub', 'tls.key', 'tls.crt'] as const)
    write(join(home, name), files[name])
  writeJson(join(home, 'config.json'), { ...config, kek: { kind: 'wrapped' }, socket })
  return reported
}

/** Returns the fingerprints, which the operator compares. */
export function restoredLines(
  home: string,
  { prints, isSigned }: Awaited<ReturnType<typeof restoreHome>>,
): string[] {
  return [
    `${home} was created from the backup. Compare these fingerprints with those that custody setup --check prints at the other nodes:`,
    ...Object.entries(prints).map(([name, print]) => `${named(name).padEnd(15)} ${print}`),
    ...(isSigned
      ? []
      : [
          'The backup is not signed, as in earlier versions: it does not prove any enrolment by itself.',
        ]),
    'Start the node, and run custody signer restore: it prints what will be restored before it changes anything.',
  ]
}

/** Whether the operator must compare a restored node's fingerprint. */
const needsPrint = (mode: NetworkMode): boolean => !hasLocalChains(mode)

/** Whether three nodes on one machine may hold the keys. */
const onOneMachine = (mode: NetworkMode): boolean => !hasRealCoins(mode)

/** Sets up three nodes on one machine. */
export async function setup(options: SetupOptions): Promise<void> {
  await setupLocal(resolve(options.home), options)
}

const USAGE = [
  'Usage: custody setup OPTIONS',
  '',
  'Set up three nodes on this machine, for tests only:',
  '  --home PARENT --ports p1,p2,p3 [--mode local|regtest-CHAIN_ID] [--kek PROVIDER]',
  'Create the keys of a signer node and write its public half:',
  '  --mode MODE --node N --home HOME --host ADDRESS --port P [--listen ADDRESS] [--out FILE] [--kek PROVIDER]',
  'Complete a signer node with the public halves of its peers, of the platform and of its recovery key:',
  '  --mode MODE --node N --home HOME --peers FILE,FILE --platform FILE --recovery FILE',
  'Create the keys of the platform and write its public half, then complete it with the public halves of the three nodes:',
  '  --as platform --mode MODE --home HOME [--out FILE]',
  '  --as platform --mode MODE --home HOME --peers FILE,FILE,FILE',
  'Create a recovery key: NAME.secret.json to keep offline, and NAME.pub.json for the signer node:',
  '  --as recovery --node N --out NAME',
  'Query the nodes of a set-up and check that all of it matches; exit 1 if not:',
  '  --check --home HOME',
  'Repair a stopped signer node whose clock was hours ahead:',
  '  --repair-clock --home HOME',
  'Restore the home of a lost signer node from a backup:',
  '  --mode MODE --home HOME --restore BACKUP --recovery-secret-file FILE --print PRINT [--kek PROVIDER]',
  '',
  'ADDRESS   address at which the other nodes connect (--host), or on which the node listens (--listen)',
  '--out     file for the public half (default: standard output)',
  'PRINT     fingerprint of the lost node, as custody setup --check prints it at another node; optional with --mode local',
  'PROVIDER  key-encryption key that wraps the keys of the home: KIND:name=value,… or @FILE (docs/production/keys.md);',
  '          default: a passphrase, or with --ports a file of each home',
  'MODE      mainnet, regtest-CHAIN_ID for a rehearsal on private chains (regtest: regtest-1337), or local (default)',
] as const

/**
 * Parses the arguments of this process.
 * @throws TypeError if an option is unknown
 */
function readOptions() {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      ports: { type: 'string' },
      port: { type: 'string' },
      mode: { type: 'string', default: 'local' },
      node: { type: 'string' },
      host: { type: 'string' },
      listen: { type: 'string' },
      peers: { type: 'string' },
      platform: { type: 'string' },
      recovery: { type: 'string' },
      out: { type: 'string' },
      as: { type: 'string', default: 'node' },
      check: { type: 'boolean', default: false },
      'repair-clock': { type: 'boolean', default: false },
      kek: { type: 'string' },
      restore: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
      'recovery-secret-file': { type: 'string' },
      print: { type: 'string' },
    },
  })
  return values
}

type Options = ReturnType<typeof readOptions>

async function main(): Promise<void> {
  const options = readOptions()
  if (options.help) return printLines(USAGE)
  const node = options.node === undefined ? undefined : Number(options.node)
  const kek = options.kek === undefined ? {} : { kek: readKek('--kek', options.kek) }
  if (options.as === 'recovery') {
    if (!options.out) throw new SetupError(...USAGE)
    return print(setupRecovery(node, resolve(options.out)), undefined)
  }
  if (!options.home) throw new SetupError(...USAGE)
  if (options.restore) return runRestore(options, options.home, options.restore, kek)
  const home = resolve(options.home)
  if (options.check) return checkHome(home)
  if (options['repair-clock']) {
    printLines(await repairClock(home))
    return
  }
  const mode = modeOf(options.mode)
  if (options.as !== 'node' && options.as !== 'platform')
    throw new SetupError('--as: must be node, platform or recovery')
  if (options.as === 'platform')
    return runPlatformSetup({ home, mode, peers: options.peers, out: options.out })
  const ports = portsOf(options)
  if (node === undefined && onOneMachine(mode)) {
    if (ports.length === 0) throw new SetupError(...USAGE)
    return setup({ home, ports, mode, ...kek })
  }
  if (ports.length > 1)
    throw new SetupError('--ports: a node on its own host has one port: use --node N --port P')
  print(
    await setupNode({ home, mode, ...kek, ...nodeOptions(options, node, ports[0]) }),
    options.out,
  )
}

/**
 * Returns the given port numbers.
 * @throws SetupError if one of them is not a port number
 */
function portsOf(options: Options): number[] {
  const ports = (options.port ?? options.ports)?.split(',').map(Number) ?? []
  if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536))
    throw new SetupError('--port, --ports: must be port numbers from 1 to 65535')
  return ports
}

/**
 * Restores the home of a lost node from a backup and prints the next steps.
 * @throws SetupError if an option is missing
 */
async function runRestore(
  options: Options,
  home: string,
  file: string,
  kek: Pick<RestoreHome, 'kek'>,
): Promise<void> {
  if (!options['recovery-secret-file']) throw new SetupError(...USAGE)
  if (options.print === undefined && needsPrint(modeOf(options.mode)))
    throw new SetupError('--print is required', ...USAGE)
  const reported = await restoreHome({
    home,
    file,
    recoverySecretFile: options['recovery-secret-file'],
    print: options.print ?? null,
    ...kek,
  })
  printNotice(restoredLines(resolve(home), reported))
}

/** Returns the options of a node on its own host that were given. */
function nodeOptions(
  { peers, host, listen, platform, recovery }: Options,
  node: number | undefined,
  port: number | undefined,
) {
  return {
    ...(peers === undefined ? {} : { peers: peers.split(',').map((file) => resolve(file)) }),
    ...(node === undefined ? {} : { node }),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(listen === undefined ? {} : { listen }),
    ...(platform === undefined ? {} : { platform: resolve(platform) }),
    ...(recovery === undefined ? {} : { recovery: resolve(recovery) }),
  }
}

/** Runs the set-up with the arguments of this process; errors are printed to standard error. */
export async function start(): Promise<void> {
  await main().catch((error: unknown) => {
    printError('setup', error)
    process.exitCode = 1
  })
}

if (import.meta.main) await start()

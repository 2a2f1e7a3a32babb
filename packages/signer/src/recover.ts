import { parseAmount, loadRegistry, type RpcEndpoint } from '@custody/chains'
import { sweeperOf } from '@custody/chains/sweep'
import {
  printError,
  printJson,
  printLines,
  printNotice,
  TerminalError,
} from '@custody/chains/terminal'
import { existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  gatheredSchema,
  preparedSchema,
  readRecoveryFile,
  signedSchema,
  type PreparedFile,
} from './recover/recovery-files.ts'
import { gather, prepare, Public, send, sign } from './recover/funds.ts'
import { openForRecovery } from './recover/node.ts'
import { askNode } from './recover/socket.ts'

/** Number of unused addresses in a row after which the search ends. */
const GAP = 100
const WAIT_S = 900

/**
 * `custody recover`: moves funds without the platform, see
 * docs/production/recovery-without-the-platform.md.
 */
const USAGE = `Usage: custody recover COMMAND [options]

At each of the two signer nodes, run by its own operator:
  node    Run a signer node from its backup until SIGTERM.
          --home DIR --backup FILE --recovery-secret FILE --print PRINT --listen HOST:PORT --peer N=HOST:PORT
  order   Record the address to which the node may sign transfers, and the highest fee of one transaction.
          --home DIR --workspace W --network N --to ADDRESS [--tag T] --max-fee COINS

At one of the two, with the backup of any node, of which these commands read only public data:
  show    Print the workspaces, sub-accounts and networks of a backup.
          --backup FILE
  gather  Query the chain for the funds (online).
          --backup FILE --workspace W --network N --endpoint URL --to ADDRESS [--tag T] --out FILE
          [--from-height H] [--gap N] [--sub-accounts 0,1,…]
  plan    Build the transactions (offline).
          --backup FILE --in FILE --out FILE
  sign    Sign them with the partner node (offline, except for the partner).
          --home DIR --partner N --in FILE --max-fee COINS --out FILE
  send    Send them (online); exit 1 if one was not sent.
          --backup FILE --in FILE --endpoint URL [--wait SECONDS]
  sweep   Repeat gather, plan, sign and send until no funds are left.
          options of gather without --out, and --home, --partner, --max-fee and --wait

PRINT          fingerprint of the node, as custody setup printed it when the nodes were set up; optional with local
N              number of the other signer node (--peer, --partner), or the network (--network)
COINS          amount in native coins of the network
--from-height  first height to read (default: 0)
--gap          unused addresses in a row after which the search ends (default: ${GAP})
--sub-accounts indexes of the sub-accounts (default: all)
--wait         longest wait for confirmations, in seconds (default: ${WAIT_S})
`

const OPTIONS = [
  'home',
  'backup',
  'recovery-secret',
  'listen',
  'peer',
  'workspace',
  'network',
  'to',
  'tag',
  'max-fee',
  'endpoint',
  'out',
  'in',
  'from-height',
  'gap',
  'sub-accounts',
  'partner',
  'wait',
  'print',
] as const
type Name = (typeof OPTIONS)[number]
type Values = Partial<Record<Name, string>>

/**
 * Maximum number of rounds: fuel, tokens and native coins, and twice as many for funds that arrive
 * during the recovery.
 */
const ROUNDS_MAX = 6

function need(values: Values, name: Name): string {
  const value = values[name]
  if (value === undefined || value === '')
    throw new TerminalError(`--${name} is required`, '', ...USAGE.split('\n'))
  return value
}
function whole(values: Values, name: Name, fallback: number): number {
  const value = Number(values[name] ?? fallback)
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`--${name}: must be a whole number`)
  return value
}
function placeOf(text: string, name: Name): { host: string; port: number } {
  const [, host, port] = /^(?:\[(?=.*\]))?([^[\]]+)\]?:(\d{1,5})$/.exec(text) ?? []
  if (!host || !port) throw new Error(`--${name}: must be HOST:PORT`)
  return { host, port: Number(port) }
}
/** User and password of a URL are removed, so that errors do not quote them. */
function endpointOf(values: Values): RpcEndpoint {
  const url = new URL(need(values, 'endpoint'))
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  url.username = url.password = ''
  return { url: url.href.replace(/\/$/, ''), ...(username === '' ? {} : { username, password }) }
}
function write(path: string, value: unknown): void {
  if (existsSync(path)) throw new Error(`${path} already exists; choose another file`)
  writeFileSync(path, `${JSON.stringify(value, null, 1)}\n`, { mode: 0o600, flag: 'wx' })
}
const notify = (line: string): void => printNotice(line)
const print = (value: unknown): void => printJson(value)

/** Returns the maximum cost of one transaction, in the smallest native unit. */
function feeMaxOf(values: Values, network: string): bigint {
  // Assets that exist in both modes are the same in both.
  const registry = loadRegistry('mainnet').network(network)
    ? loadRegistry('mainnet')
    : loadRegistry('local')
  const asset = registry.asset(registry.network(network)?.native_asset ?? '')
  if (!asset) throw new Error(`--network: network ${network} does not exist`)
  return parseAmount(need(values, 'max-fee'), asset.decimals)
}

const lookOf = (values: Values) => ({
  workspace: need(values, 'workspace'),
  network: need(values, 'network'),
  endpoint: endpointOf(values),
  to: need(values, 'to'),
  tag: values.tag ?? null,
  gap: whole(values, 'gap', GAP),
  fromHeight: whole(values, 'from-height', 0),
  notify,
  subAccounts:
    values['sub-accounts'] === undefined ? null : values['sub-accounts'].split(',').map(Number),
})
const signing = (values: Values, network: string) => ({
  feeMax: feeMaxOf(values, network),
  partner: whole(values, 'partner', 0),
  ask: (body: Record<string, unknown>) =>
    askNode(resolve(need(values, 'home')), 'recover-sign', body),
})
const sending = (values: Values) => ({
  endpoint: endpointOf(values),
  waitMs: whole(values, 'wait', WAIT_S) * 1000,
  notify,
})

async function runNode(values: Values): Promise<void> {
  const [, node, at] = /^([123])=(.+)$/.exec(need(values, 'peer')) ?? []
  if (!node || !at) throw new Error('--peer: must be N=HOST:PORT')
  const running = await openForRecovery({
    home: need(values, 'home'),
    backup: need(values, 'backup'),
    recoverySecretFile: need(values, 'recovery-secret'),
    print: values.print ?? null,
    listen: placeOf(need(values, 'listen'), 'listen'),
    partner: { node: Number(node), ...placeOf(at, 'peer') },
  })
  const end = (): void => {
    void running.stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  printLines(`recovery node ${running.node} ready, ${running.keys} keys`)
}

/**
 * All movable funds have been sent; the exit code is 1 if some funds wait for fuel that is not
 * available here.
 */
function finished(sent: readonly string[], left: PreparedFile['left']): void {
  const done = !left.some(({ waits }) => waits)
  print({ done, sent, left })
  if (!done) process.exitCode = 1
}

async function sweep(values: Values): Promise<void> {
  const existing = new Public(need(values, 'backup'))
  const rounds: string[] = []
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const prepared = prepare(existing, await gather(existing, lookOf(values)))
    if (prepared.transactions.length === 0) return finished(rounds, prepared.left)
    for (const { asset, amount, from, fuel } of prepared.transactions) {
      notify(`${asset}: ${amount} from ${from}${fuel ? `, fuel for ${fuel.join('/')}` : ''}`)
    }
    const signed = await sign(prepared, signing(values, prepared.network))
    const failed = await send(existing, signed, sending(values))
    if (failed.length > 0)
      throw new Error(
        `some transactions were not sent or failed: ${failed.map(({ hash, reason }) => `${hash} ${reason}`).join('; ')}`,
      )
    rounds.push(...signed.signed.map(({ hash }) => hash))
    if (!prepared.more) return finished(rounds, prepared.left)
  }
  throw new Error(`after ${ROUNDS_MAX} rounds some funds are left; run the command again`)
}

const COMMANDS: Record<string, (values: Values) => Promise<void> | void> = {
  node: runNode,
  order: async (values) => {
    const network = need(values, 'network')
    print(
      await askNode(resolve(need(values, 'home')), 'recover', {
        workspace: need(values, 'workspace'),
        network,
        to_address: need(values, 'to'),
        tag: values.tag ?? null,
        fee_max: feeMaxOf(values, network).toString(),
      }),
    )
  },
  show: (values) => {
    const existing = new Public(need(values, 'backup'))
    print({
      node: existing.node,
      workspaces: existing.workspaces.map((workspace) => ({
        workspace,
        sub_accounts: existing.subAccounts(workspace),
      })),
      networks: existing.registry.networks.map((network) => ({
        network: network.code,
        life: sweeperOf(network).life,
      })),
    })
  },
  gather: async (values) =>
    write(need(values, 'out'), await gather(new Public(need(values, 'backup')), lookOf(values))),
  plan: (values) => {
    const prepared = prepare(
      new Public(need(values, 'backup')),
      readRecoveryFile(gatheredSchema, need(values, 'in')),
    )
    write(need(values, 'out'), prepared)
    print({ transactions: prepared.transactions.length, left: prepared.left, more: prepared.more })
  },
  sign: async (values) => {
    const prepared = readRecoveryFile(preparedSchema, need(values, 'in'))
    write(need(values, 'out'), await sign(prepared, signing(values, prepared.network)))
  },
  send: async (values) => {
    const signed = readRecoveryFile(signedSchema, need(values, 'in'))
    const failed = await send(new Public(need(values, 'backup')), signed, sending(values))
    print({ sent: signed.signed.map(({ hash }) => hash), failed, more: signed.more })
    if (failed.length > 0) process.exitCode = 1
  },
  sweep,
}

try {
  const [name = '', ...words] = process.argv.slice(2)
  if (name === '--help' || name === '-h') {
    printLines(USAGE.split('\n'))
    process.exit(0)
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) throw new TerminalError(...USAGE.split('\n'))
  const { values } = parseArgs({
    args: words,
    options: Object.fromEntries(OPTIONS.map((option) => [option, { type: 'string' as const }])),
  })
  await command(values as Values)
} catch (error) {
  printError('recover', error)
  process.exitCode = 1
}

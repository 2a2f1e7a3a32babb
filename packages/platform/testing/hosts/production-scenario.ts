import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Devnet } from '../../../devnet/src/devnet.ts'
import { blocksOf, inlineCommands, type Block } from '../documents.ts'
import { ProductionHost, systemPrograms } from './production-hosts.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

/**
 * `node production-scenario.ts FOLDER POSTGRES`, in an empty network namespace: runs the commands
 * of the pages about production, from empty hosts with a bundle each (FOLDER/platform,
 * FOLDER/signer) to a transfer, and then backup, loss, rotation and upgrade. The commands are the
 * pages' own code blocks; the text after `sh` of a block is the kind of host. POSTGRES is a folder
 * with programs of PostgreSQL. Prints a line for each step.
 */
const [folder = '', postgres = ''] = process.argv.slice(2)
const began = performance.now()
const note = (what: string): void => {
  process.stdout.write(`${((performance.now() - began) / 1000).toFixed(1)} s: ${what}\n`)
}
const programs = systemPrograms(folder)
const hostOf = (name: string, kind: 'platform' | 'signer'): ProductionHost =>
  new ProductionHost(folder, programs, name, join(folder, kind))

const NODES = [1, 2, 3] as const
type Node = (typeof NODES)[number]
const nodes = new Map(NODES.map((node) => [node, hostOf(`node-${node}`, 'signer')]))
const keeper = hostOf('keeper', 'signer')
const caller = hostOf('caller', 'platform')
let platform = hostOf('platform', 'platform')
const at = (node: Node): ProductionHost => nodes.get(node) as ProductionHost
const everyone = (): ProductionHost[] => [...nodes.values(), keeper, caller, platform]

/** Adapts a page's commands to this test, which uses local chains. */
const rehearsed = (text: string): string =>
  text.replaceAll('--mode mainnet', '--mode local').replaceAll('npx custody', 'custody')
/** Returns a command that the page lists for node 1, as the operator of another node enters it. */
function forNode(text: string, node: Node): string {
  const swapped = (digit: string): string =>
    digit === '1' ? String(node) : digit === String(node) ? '1' : digit
  return rehearsed(text).replaceAll(
    /((?:node|recovery)-|--node |10\.0\.0\.|--api-key-)([123])\b/g,
    (_, before: string, digit: string) => before + swapped(digit),
  )
}
/** Copies the files that operators send to each other, by sender and receiver. */
function carry(): void {
  const give = (from: ProductionHost, name: string, ...to: ProductionHost[]): void => {
    if (existsSync(from.work(name)))
      for (const host of to) copyFileSync(from.work(name), host.work(name))
  }
  for (const node of NODES) {
    give(
      at(node),
      `node-${node}.json`,
      ...NODES.filter((other) => other !== node).map(at),
      platform,
    )
    give(keeper, `recovery-${node}.pub.json`, at(node))
  }
  give(platform, 'platform.json', ...nodes.values())
}

const inShell = 'set -a; . /etc/custody/platform.env; . /etc/custody/secrets.env; set +a\n'
const atPlatform = (text: string, expected = 0): Promise<string> =>
  platform.run(`${inShell}${rehearsed(text)}`, expected)

/** Returns the shell blocks of a page, or of the section that begins at a given heading. */
function pageOf(file: string): Block[] {
  const blocks = blocksOf(file).filter(({ language }) => language === 'sh')
  assert.ok(blocks.length > 0, file)
  return blocks
}
const done = new Set<Block>()
async function follow(block: Block, hosts = everyone()): Promise<string> {
  done.add(block)
  const { text, place } = block
  let said = ''
  if (place === 'each') said = (await Promise.all(hosts.map((host) => host.run(text)))).join('')
  else if (place === 'keeper')
    for (const node of NODES) said += await keeper.run(forNode(text, node))
  else if (place === 'node')
    said = (await Promise.all(NODES.map((node) => at(node).run(forNode(text, node))))).join('')
  else if (place === 'node1') said = await at(1).run(rehearsed(text))
  else if (place === 'node start')
    await Promise.all(NODES.map((node) => at(node).start(forNode(text, node))))
  else if (place === 'platform start') await platform.start(rehearsed(text))
  else if (place === 'platform')
    said = existsSync(platform.path('etc/custody/platform.env'))
      ? await atPlatform(text)
      : await platform.run(rehearsed(text))
  else assert.fail(`${block.file}:${block.line}: no host is called "${place}"`)
  carry()
  return said
}

const details = () =>
  everyone()
    .map((host) => host.lastLines)
    .join('\n')
const until = (what: string, check: () => Promise<boolean>): Promise<boolean> =>
  waitFor(what, check, { details })
const API = 'http://127.0.0.1:8080'
const isReady = () =>
  until(
    '/readyz?deep',
    async () => (await fetch(`${API}/readyz?deep`).catch(() => null))?.status === 200,
  )

/** Starts the operator's own PostgreSQL, which refuses to run as root. */
async function startDatabase(): Promise<(name: string) => string> {
  const wrap = ['--user', '--map-user=65534', '--map-group=65534']
  const data = join(folder, 'database')
  const made = spawnSync(
    'unshare',
    [
      ...wrap,
      join(postgres, 'initdb'),
      '--pgdata',
      data,
      '--username',
      'custody',
      '--auth',
      'trust',
      '--encoding',
      'UTF8',
      '--locale',
      'C',
      '--no-sync',
    ],
    { encoding: 'utf8' },
  )
  assert.equal(made.status, 0, made.stderr)
  const server = spawn(
    'unshare',
    [
      ...wrap,
      'setpriv',
      '--pdeathsig',
      'KILL',
      join(postgres, 'postgres'),
      '-D',
      data,
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'fsync=off',
    ],
    { stdio: 'ignore' },
  )
  process.once('exit', () => server.kill('SIGKILL'))
  const create = (name: string) =>
    spawnSync(join(postgres, 'createdb'), ['-h', '127.0.0.1', '-U', 'custody', name], {
      encoding: 'utf8',
    })
  await until('PostgreSQL', async () => create('first').status === 0)
  assert.equal(create('second').status, 0)
  return (name) => `postgresql://custody@127.0.0.1:5432/${name}`
}

function settle(host: ProductionHost, database: string, secretsKey: string | null): void {
  const values: [string, Record<string, string>][] = [
    [
      'platform.env',
      {
        CUSTODY_NETWORK: 'local',
        CUSTODY_HOME: host.path('/var/lib/custody/home'),
        CUSTODY_SIGNERS: host.path('/var/lib/custody/signers'),
        CUSTODY_LOCAL_CHAINS: 'http://127.0.0.1:7200',
        CUSTODY_LOG_LEVEL: 'warn',
      },
    ],
    [
      'secrets.env',
      {
        DATABASE_URL: database,
        ...(secretsKey === null ? {} : { CUSTODY_SECRETS_KEY: secretsKey }),
      },
    ],
  ]
  for (const [name, variables] of values) {
    const lines = Object.entries(variables).map(([variable, value]) => `${variable}=${value}\n`)
    host.write(`etc/custody/${name}`, lines.join(''))
  }
}

const read = async (path: string): Promise<string> =>
  caller.run(`custody request GET '${path}' --url ${API}`)
async function transfer(sequence: string): Promise<void> {
  const commands = transferLines.map((line) => line.replaceAll('payout-1', sequence))
  for (const line of commands) await caller.run(`${rehearsed(line)} --url ${API}`)
}
/** The transfer of the README, and the command that waits for it. */
const readme = blocksOf('README.md')
  .filter(({ language }) => language === 'sh')
  .flatMap(({ text }) => text.split('\n'))
const transferLines = readme.filter((line) => line.includes('payout-1'))
const walletLine = readme.find((line) => line.includes('create-wallet')) as string
assert.deepEqual([transferLines.length, walletLine.includes('npx custody request')], [2, true])

const database = await startDatabase()
mkdirSync(join(folder, 'chains'))
const chains = await Devnet.start(join(folder, 'chains'), 7200, { pace: 10 })
note('a database and local chains')

// The set-up runs all blocks of several-hosts.md.
const secretsKey = randomBytes(32).toString('base64')
for (const host of everyone()) host.env['VERSION'] = '1'
for (const node of NODES)
  at(node).write('etc/custody-signer/passphrase', `${randomBytes(12).toString('hex')}\n`)
for (const block of pageOf('docs/production/several-hosts.md')) {
  if (block.place === 'platform start') settle(platform, database('first'), secretsKey)
  await follow(block)
}
await isReady()
for (const host of [...nodes.values(), platform]) {
  const kind = host === platform ? 'platform' : 'signer'
  assert.deepEqual(
    host.executables,
    [join(folder, kind, 'node_modules/node/bin/node')],
    'the Node of the bundle',
  )
}
note('three nodes and a platform are set up')

// The enrolment runs the blocks for nodes on separate hosts.
const enrolment = blocksOf('docs/enrolment.md').filter(({ language }) => language === 'sh')
const lineWith = (...words: string[]): string => {
  const lines = enrolment
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => words.every((word) => line.includes(word)))
  assert.equal(lines.length, 1, words.join(' '))
  return rehearsed(lines[0] as string)
}
await caller.run(lineWith('keygen'))
for (const host of [...nodes.values(), platform])
  copyFileSync(caller.work('caller.pem.pub'), host.work('caller.pem.pub'))
const [, apiKey = ''] =
  /^API key ([0-9a-f-]{36}), index 1/m.exec(
    await at(1).run(lineWith('signer enrol', '--trust-file')),
  ) ?? []
for (const host of [...nodes.values(), platform]) host.env['API_KEY'] = apiKey
for (const node of [2, 3] as const) await at(node).run(lineWith('signer enrol', '--api-key'))
await atPlatform(lineWith('api-user create', '--index'))
copyFileSync(at(1).work('caller-trust.json'), caller.work('caller-trust.json'))
Object.assign(caller.env, { CUSTODY_KEY: 'caller.pem', CUSTODY_API_KEY: apiKey })
note('a caller is enrolled')

await caller.run(`${rehearsed(walletLine)} --url ${API}`)
const address = (
  await caller.run(
    `custody request POST /dac/v1/address '{"asset":"ETH"}' --url ${API} --field address`,
  )
).trim()
await atPlatform(`custody devnet fund ETH ${address} 50`)
await until('the deposit', async () =>
  /"balance":\s*50\b/.test(await read('/dac/v1/wallets?asset=ETH')),
)
await transfer('first')
note('a transfer is confirmed')

// The backups run the blocks of disaster.md before its first loss; the blocks about the losses
// follow.
const disaster = pageOf('docs/production/disaster.md')
const isOf = (place: RegExp) => disaster.filter((block) => place.test(block.place))
for (const block of disaster.slice(
  0,
  disaster.findIndex(({ place }) => place === 'restored'),
))
  await follow(block)
copyFileSync(platform.work('recovery.key'), keeper.work('recovery.key'))
const backups = join(folder, 'carried')
mkdirSync(backups)
for (const node of NODES)
  copyFileSync(
    at(node).path(`var/lib/custody-signer/node-${node}.backup`),
    join(backups, `node-${node}.backup`),
  )
copyFileSync(keeper.work('recovery-3.secret.json'), join(backups, 'recovery-3.secret.json'))
assert.equal(spawnSync('cp', ['-r', platform.path('backups/2026-01-31'), backups]).status, 0)
await transfer('since-the-backup')
note('platform and nodes are backed up')

// Node 3 is lost.
await at(3).lose()
const lost = hostOf('node-3-again', 'signer')
nodes.set(3, lost)
lost.env['VERSION'] = '1'
lost.write('etc/custody-signer/passphrase', `${randomBytes(12).toString('hex')}\n`)
for (const name of ['node-3.backup', 'recovery-3.secret.json'])
  copyFileSync(join(backups, name), lost.work(name))
await follow(pageOf('docs/production/several-hosts.md')[0] as Block, [lost])
const [printBlock, ...lostBlocks] = disaster.slice(
  disaster.findIndex(({ place }) => place === 'node1'),
) as [Block, ...Block[]]
// The lost node does not answer.
done.add(printBlock)
const [, print = ''] =
  /^signer node 3 +([0-9a-f-]{24})$/m.exec(await at(1).run(rehearsed(printBlock.text), 1)) ?? []
assert.notEqual(print, '', 'the other node prints the print of the lost one')
lost.env['PRINT'] = print
for (const block of lostBlocks) {
  if (block.place !== 'lost' && block.place !== 'lost start') {
    await follow(block)
    continue
  }
  done.add(block)
  if (block.place === 'lost start') {
    await lost.start(rehearsed(block.text))
    continue
  }
  const said = await lost.run(rehearsed(block.text))
  const [, code] = /--confirm ([0-9a-f]{16})$/m.exec(said) ?? []
  if (code !== undefined) lost.env['CODE'] = code
}
// The restored node signs while another node is stopped.
await at(1).stop('SIGKILL')
await transfer('by-the-restored-node')
const startBlock = pageOf('docs/production/several-hosts.md').find(
  ({ place }) => place === 'node start',
) as Block
await at(1).start(forNode(startBlock.text, 1))
note('a lost node is restored, signs, and the shares are refreshed')

// The platform is lost: a new host, an empty database, and the backup from before the last
// transfers.
await platform.lose()
platform = hostOf('platform-again', 'platform')
platform.env['VERSION'] = '1'
settle(platform, database('second'), null)
assert.equal(
  spawnSync('cp', ['-r', join(backups, '2026-01-31'), platform.path('backups')]).status,
  0,
)
copyFileSync(keeper.work('recovery.key'), platform.work('recovery.key'))
await follow(pageOf('docs/production/several-hosts.md')[0] as Block, [platform])
const [restore, ...after] = isOf(/^restored$/) as [Block, ...Block[]]
done.add(restore)
await atPlatform(restore.text)
const startPlatform = pageOf('docs/production/several-hosts.md').find(
  ({ place }) => place === 'platform start',
) as Block
await platform.start(rehearsed(startPlatform.text))
for (const block of after) {
  done.add(block)
  await atPlatform(block.text)
}
await transfer('since-the-backup')
assert.equal(
  (await read('/dac/v1/transactions?asset=ETH&limit=100')).match(/"type":\s*"Withdraw"/g)?.length,
  3,
  'nothing is paid twice',
)
await transfer('after-the-restore')
note('a lost platform is restored from its backup, and nothing is paid twice')

// The nodes are rotated one at a time.
const inline = (page: string, beginning: string): string => {
  const lines = inlineCommands(page).filter((command) => command.startsWith(beginning))
  assert.ok(lines.length > 0, `${page}: ${beginning}`)
  return (lines[0] as string)
    .replace('HOME', '/var/lib/custody-signer')
    .replace(' --days N', ' --days 400')
}
await at(2).stop()
const passphrase = 'export CUSTODY_SIGNER_PASSPHRASE_FILE=/etc/custody-signer/passphrase\n'
await at(2).run(
  `${passphrase}${inline('docs/operating.md', 'custody kek rotate')}\n${inline('docs/production/keys.md', 'custody kek status')}`,
)
await at(2).start(forNode(startBlock.text, 2))
await at(2).run(inline('docs/production/keys.md', 'custody tls renew'))
assert.match(await at(2).run(inline('docs/production/keys.md', 'custody tls status')), /expires/)
await at(3).stop('SIGKILL')
await transfer('by-the-rotated-node')
await at(3).start(forNode(startBlock.text, 3))
note('keys are rotated and a certificate is renewed')

// For the upgrade all processes of the platform are stopped, then the nodes are upgraded one after
// the other, then the platform.
for (const host of everyone()) host.env['VERSION'] = '2'
const [beforehand, change] = pageOf('docs/production/upgrades.md') as [Block, Block]
assert.match(await follow(beforehand), /^nothing would be applied$[^]*^running: all on /m)
await platform.stop()
for (const node of NODES) {
  await at(node).stop()
  await follow(change, [at(node)])
  await at(node).start(forNode(startBlock.text, node))
  await at(node).run('custody signer status --home /var/lib/custody-signer')
}
await follow(change, [platform])
await platform.start(rehearsed(startPlatform.text))
await isReady()
await transfer('after-the-upgrade')
await atPlatform('custody audit')
note('everything is upgraded, and the audit is clean')

const left = ['several-hosts', 'disaster', 'upgrades']
  .flatMap((name) => pageOf(`docs/production/${name}.md`))
  .filter(
    (block) => ![...done].some((each) => each.file === block.file && each.line === block.line),
  )
assert.deepEqual(
  left.map(({ file, line }) => `${file}:${line}`),
  [],
  'blocks that were not followed',
)
await Promise.all(everyone().map((host) => host.stop()))
await chains.close()
for (const name of readdirSync(folder))
  if (!['platform', 'signer'].includes(name))
    rmSync(join(folder, name), { recursive: true, force: true })
note(`done in ${relative('/', folder)}`)
process.exit(0)

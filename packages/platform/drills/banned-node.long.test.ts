import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import type { Network } from '@custody/chains'
import {
  editConfigs,
  freePorts,
  createDataDirs,
  nodeInProcess,
} from '../../signer/testing/data-dirs.ts'
import { fingerprintOf, type Pinned } from '../../signer/src/fingerprints.ts'
import { identityFolder, signersFolder } from '../src/core/data-dir.ts'
import { blocksOf, ROOT } from '../testing/documents.ts'
import { balance, call, fundedWallet, TestPlatform, type User } from '../testing/harness.ts'
import { RecoveryDrill, registry } from '../testing/hosts/recovery-drill.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests the move to new nodes: node 3 is banned and gone, and nodes 1 and 2 move all funds to a
 * second installation with the commands of the document.
 */
const PAGE = 'docs/production/replacing-a-banned-node.md'
const old = new TestPlatform()
const fresh = new TestPlatform({
  home: mkdtempSync(join(tmpdir(), 'custody-fresh-')),
  mode: 'prepared',
})
const operators = new RecoveryDrill()
const freshNodes: (() => Promise<void>)[] = []
let devnet = ''

/**
 * One transfer route of the move. `subAccount` is a name. `indices` are the indices of the
 * sub-accounts whose coins it receives, 0 for the workspace's gas tanks.
 */
interface Leg {
  workspace: string
  subAccount: string
  indices: string
  network: string
  most: string
  fund: Record<string, string>
}
const LEGS: readonly Leg[] = [
  {
    workspace: 'acme',
    subAccount: 'main',
    indices: '0,1',
    network: 'BTC',
    most: '0.001',
    fund: { BTC: '0.5' },
  },
  {
    workspace: 'acme',
    subAccount: 'other',
    indices: '2',
    network: 'BTC',
    most: '0.002',
    fund: { BTC: '0.3' },
  },
  {
    workspace: 'acme',
    subAccount: 'main',
    indices: '0,1',
    network: 'ETH',
    most: '0.05',
    fund: { ETH: '2', USDT_ETH: '120' },
  },
  {
    workspace: 'beta',
    subAccount: 'main',
    indices: '0,1',
    network: 'BTC',
    most: '0.001',
    fund: { BTC: '0.2' },
  },
  {
    workspace: 'beta',
    subAccount: 'main',
    indices: '0,1',
    network: 'ETH',
    most: '0.05',
    fund: { ETH: '1' },
  },
]
const USERS = [
  ['acme', 'main'],
  ['acme', 'other'],
  ['beta', 'main'],
] as const
const usersOf = async (platform: TestPlatform): Promise<Map<string, User>> => {
  const users = new Map<string, User>()
  for (const [workspace, subAccount] of USERS)
    users.set(`${workspace}/${subAccount}`, await platform.user(workspace, { subAccount }))
  return users
}
const userOf = (users: Map<string, User>, { workspace, subAccount }: Leg): User =>
  users.get(`${workspace}/${subAccount}`) as User

/** Starts nodes with new identities and a platform on the chains of the old installation. */
async function startFresh(): Promise<void> {
  const signers = await freePorts(3)
  const folder = signersFolder(fresh.home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await createDataDirs(folder, signers, 'own')
  editConfigs(folder, (config) => {
    config.pool = { secp256k1: 2, ed25519: 0 }
  })
  writeFileSync(
    join(fresh.home, 'ports.json'),
    JSON.stringify({ signers, devnet: Number(new URL(devnet).port) }),
    { mode: 0o600 },
  )
  freshNodes.push(
    ...(await Promise.all([1, 2, 3].map((node) => nodeInProcess(join(folder, `node-${node}`))))),
  )
  await fresh.start({ CUSTODY_LOCAL_CHAINS: devnet, CUSTODY_SIGNERS: join(folder, 'platform') })
}

before(async () => {
  await old.start()
  devnet = `http://127.0.0.1:${(JSON.parse(readFileSync(join(old.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
})
after(async () => {
  await operators.remove()
  await fresh.remove()
  await Promise.all(freshNodes.map((stop) => stop()))
  await old.remove()
})

const blocks = blocksOf(PAGE)
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text.trim())

/**
 * Runs commands of the page in the operators' folder.
 * @returns their output
 */
async function typed(text: string, env: Record<string, string> = {}): Promise<string> {
  const script = `set -eu -o pipefail
custody() { '${process.execPath}' '${ROOT}packages/platform/bin/custody.mjs' "$@"; }
${text}`
  const child = spawn('bash', ['-c', script], {
    cwd: operators.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CUSTODY_HOME: old.home, ...env },
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (part: string) => (said[name] += part))
  const status = await new Promise((resolve) => {
    child.once('close', resolve)
  })
  assert.equal(status, 0, `${text}\n${said.stdout}\n${said.stderr}`)
  return said.stdout
}

const unitsOf = (asset: string, amount: string): bigint => {
  const [whole = '0', fraction = ''] = amount.split('.')
  return BigInt(whole + fraction.padEnd(registry.asset(asset)!.decimals, '0'))
}
const creditedTo = async (user: User, asset: string): Promise<bigint> =>
  unitsOf(asset, (await balance(user, asset)).balance)

interface Row {
  kind: string
  body: string
  at: number
}
function rowsOf(home: string): Row[] {
  const database = new DatabaseSync(join(home, 'record.sqlite'), { readOnly: true })
  try {
    return database
      .prepare('SELECT kind, body, at FROM record ORDER BY height')
      .all() as unknown as Row[]
  } finally {
    database.close()
  }
}

interface CommandResult {
  done: boolean
  sent: string[]
  left: { asset: string; amount: string; why: string }[]
}

test('after a ban, two honest nodes move every workspace’s funds to a new installation', async (t) => {
  assert.equal(blocks.length, 5, 'the page has other commands than this drill')
  const [confirm, revoke, backup, open, move] = blocks as [string, string, string, string, string]
  const began = Date.now()
  const note = (what: string): void => {
    t.diagnostic(`${what}: ${Date.now() - began} ms`)
  }

  const starting = startFresh()
  starting.catch(() => undefined)
  const users = await usersOf(old)
  const oldAddresses = new Map<Leg, string>()
  await Promise.all(
    USERS.map(async ([workspace, subAccount]) => {
      for (const leg of LEGS.filter(
        (each) => each.workspace === workspace && each.subAccount === subAccount,
      )) {
        for (const [asset, amount] of Object.entries(leg.fund))
          oldAddresses.set(leg, await fundedWallet(old, userOf(users, leg), asset, amount))
      }
    }),
  )
  await old.atRest()
  note('funded')

  // Node 1 bans node 3, which does not run from here on.
  assert.equal(
    (await old.cli('signer', 'ban', '--node', '1', '--peer', '3', '--reason', 'drill')).status,
    0,
  )
  const bannedAt = Date.now()
  await waitFor('the report at node 2', async () =>
    /signer 1 reports a ban of signer 3/.test(
      (await old.cli('signer', 'bans', '--node', '2')).stdout,
    ),
  )
  await old.nodesDown([3], async () => {
    const printed = await typed(confirm)
    assert.match(
      printed,
      /^signer 1 has banned signer 3 [^]*signer 1 reports a ban of signer 3 [^]*signer 2 has banned signer 3 .*confirmed by its operator$/m,
    )
    for (const user of users.values()) await typed(revoke, { API_KEY: user.apiKey })
    await typed(backup)
    for (const node of [1, 2])
      copyFileSync(
        join(signersFolder(old.home), `recovery-${node}`),
        operators.place(`recovery-${node}`),
      )
    assert.equal(await old.stop(), 0)
    await old.nodesDown([1, 2], async () => {
      for (const node of [1, 2]) {
        const later = rowsOf(join(signersFolder(old.home), `node-${node}`)).filter(
          ({ kind, at }) => kind === 'step' && at > bannedAt,
        )
        assert.ok(
          later.every(({ body }) => (JSON.parse(body) as { partner: number }).partner !== 3),
          `node ${node} signed with node 3 after the ban`,
        )
      }
      await starting
      note('a second installation')
      await drill(open, move, oldAddresses, note)
    })
  })
})

async function drill(
  open: string,
  move: string,
  oldAddresses: Map<Leg, string>,
  note: (what: string) => void,
): Promise<void> {
  const users = await usersOf(fresh)
  const addresses = new Map<Leg, string>()
  for (const leg of LEGS) {
    for (const asset of Object.keys(leg.fund)) {
      assert.equal(
        (await call(userOf(users, leg), 'POST', '/dac/v1/create-wallet', { asset })).status,
        200,
      )
      const { address } = (
        await call<{ address: string }>(userOf(users, leg), 'POST', '/dac/v1/address', { asset })
      ).body
      // The coin and the tokens of a network share one address.
      addresses.set(leg, addresses.get(leg) ?? address)
      assert.notEqual(address, oldAddresses.get(leg))
    }
  }
  const [first, second] = (await freePorts(2)) as [number, number]
  // The data that the operators wrote down when they set up the old nodes.
  const peersFile = JSON.parse(
    readFileSync(join(identityFolder(old.home), 'peers.json'), 'utf8'),
  ) as {
    nodes: (Pinned & { node: number })[]
  }
  const printOfNode = (node: number): string =>
    fingerprintOf(node, peersFile.nodes.find((each) => each.node === node) as Pinned)
  await Promise.all(
    open
      .split('\n')
      .map((line) =>
        operators.runNode(
          ...line
            .replace('0.0.0.0:7001', `127.0.0.1:${first}`)
            .replace('0.0.0.0:7002', `127.0.0.1:${second}`)
            .replace('HOST1:7001', `127.0.0.1:${first}`)
            .replace('HOST2:7002', `127.0.0.1:${second}`)
            .replace('"$PRINT1"', printOfNode(1))
            .replace('"$PRINT2"', printOfNode(2))
            .split(' node ')
            .at(-1)!
            .split(' '),
        ),
      ),
  )
  note('two nodes opened')

  /** Returns the page's commands for one route: two orders and a sweep. */
  const commandsOf = ({ workspace, network, most, indices }: Leg): string[] =>
    move
      .split('\n')
      .map((line) =>
        line
          .replace('acme', workspace)
          .replace('BTC', network)
          .replace('0.001', most)
          .replace('--sub-accounts 0,1', `--sub-accounts ${indices} --gap 4`),
      )
  const envOf = (leg: Leg) => ({
    TO: addresses.get(leg) as string,
    ENDPOINT: `${devnet}/${leg.network.toLowerCase()}`,
  })
  const sweep = async (leg: Leg): Promise<CommandResult> =>
    JSON.parse(await typed(commandsOf(leg)[2] as string, envOf(leg))) as CommandResult
  const onChain = ({ workspace, network, indices }: Leg, to: string) =>
    operators.ofWorkspace(
      devnet,
      workspace,
      registry.network(network) as Network,
      to,
      indices.split(',').map(Number),
    )

  /** Moves the funds of one route and compares the new ledger with the chain. */
  const moveLeg = async (leg: Leg): Promise<void> => {
    const to = addresses.get(leg) as string
    const had = await onChain(leg, to)
    await typed(commandsOf(leg).slice(0, 2).join('\n'), envOf(leg))
    const { done, sent, left } = await sweep(leg)
    assert.ok(done && sent.length > 0, JSON.stringify(left))
    const stays = await onChain(leg, to)
    const native = (registry.network(leg.network) as Network).native_asset
    for (const asset of Object.keys(leg.fund)) {
      const moved = (had[asset] ?? 0n) - (stays[asset] ?? 0n)
      assert.ok(
        moved >= unitsOf(asset, leg.fund[asset] as string) - unitsOf(native, leg.most) ||
          asset !== native,
        asset,
      )
      // Only the native coin pays fees, and no transaction pays more than the operators allowed.
      const feesMax = asset === native ? BigInt(sent.length) * unitsOf(native, leg.most) : 0n
      const credited = await waitFor(
        `${leg.workspace} ${leg.subAccount} ${asset} at the new installation`,
        async () => {
          const sum = await creditedTo(userOf(users, leg), asset)
          return sum >= moved - feesMax && sum > 0n ? sum : null
        },
      )
      assert.ok(
        credited <= moved && credited >= unitsOf(asset, leg.fund[asset] as string) - feesMax,
        `${asset}: ${credited} of ${moved}`,
      )
      if (asset !== native)
        assert.deepEqual(
          [credited, stays[asset] ?? 0n],
          [unitsOf(asset, leg.fund[asset] as string), 0n],
        )
    }
    note(
      `${leg.workspace} ${leg.subAccount} ${leg.network}: ${sent.length} transactions, left ${JSON.stringify(left)}`,
    )
  }
  // The nodes that were restored from the backups refuse the banned node as a peer.
  const [bitcoin] = LEGS as [Leg]
  await typed(commandsOf(bitcoin)[0] as string, envOf(bitcoin))
  const withBanned = (commandsOf(bitcoin)[2] as string).replace('--partner 2', '--partner 3')
  await assert.rejects(
    typed(withBanned, envOf(bitcoin)),
    /Node 3 was banned by this node's operator; it is banned permanently \(BANNED, node 3\)/,
  )

  await Promise.all(
    ['BTC', 'ETH'].map(async (code) => {
      for (const leg of LEGS.filter(({ network }) => network === code)) await moveLeg(leg)
    }),
  )
  note('everything moved')
  for (const leg of LEGS.filter(({ network }) => network === 'BTC'))
    assert.deepEqual((await sweep(leg)).sent, [], 'a sweep that is run again sends nothing')

  // A customer pays to an old address, and the same command moves the payment.
  const before = await creditedTo(userOf(users, bitcoin), 'BTC')
  await fresh.fund('BTC', oldAddresses.get(bitcoin) as string, '0.05')
  assert.equal((await sweep(bitcoin)).sent.length, 1)
  const late = await waitFor('the late deposit', async () => {
    const more = (await creditedTo(userOf(users, bitcoin), 'BTC')) - before
    return more > 0n ? more : null
  })
  assert.ok(late <= 5_000_000n && late > 4_900_000n, `${late}`)

  await operators.stop()
  for (const [node, partner] of [
    [1, 2],
    [2, 1],
  ] as const) {
    const steps = rowsOf(operators.place(`node-${node}`))
      .filter(({ kind }) => kind === 'step')
      .map(({ body }) => JSON.parse(body) as { partner: number })
    assert.ok(steps.length > LEGS.length)
    assert.deepEqual([...new Set(steps.map((step) => step.partner))], [partner])
  }
  note('everything')
}

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sealedUnder } from '@custody/threshold'
import { startBao, withoutBao, type Bao } from '../../../key-encryption/testing/bao.ts'
import { makeToken, withoutToken } from '../../../key-encryption/testing/softhsm.ts'
import { loadConfig } from '../config.ts'
import { openDataDir } from './data-dir.ts'
import { keyStatus, rotate } from './rotate.ts'
import { readShares } from '../store/shares.ts'
import { ETH, eth, SignerCluster, pay, SINK_ETH, transfer } from '../../testing/signer-cluster.ts'
import { freePorts, createDataDirs, runNode } from '../../testing/data-dirs.ts'
import { copyOf } from '../../testing/prepared.ts'
import { HANG_MS } from '../../../../testing/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-kek-'))
const ended: (() => Promise<unknown>)[] = [
  async () => {
    rmSync(folder, { recursive: true, force: true })
  },
]
after(async () => {
  for (const each of ended.reverse()) await each()
})

const fileOf = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 })
  return join(folder, name)
}
const passphrase = fileOf('passphrase', 'a passphrase of twelve and more\n')
const byPassphrase = { kind: 'passphrase' as const, file: passphrase }

/** Opens every share of a home, as a node does before it signs. @returns the number of shares */
async function opens(home: string): Promise<number> {
  const vault = await openDataDir(home, loadConfig(home), process.env)
  let count = 0
  for (const { sealedShare, engine, curve, keyId, epoch, party } of readShares(
    join(home, 'record.shares'),
  )) {
    await vault.rewrap(sealedShare, { engine, curve, keyId, epoch, party })
    count++
  }
  return count
}

const kek = (args: string[], env: NodeJS.ProcessEnv = {}) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, '../kek.ts'), ...args],
    {
      env: { ...process.env, ...env },
      encoding: 'utf8',
      input: '',
    },
  )
  return { status, stdout, stderr }
}

/** Checks that each pair of nodes can sign an order. */
async function signsByEveryPair(cluster: SignerCluster): Promise<void> {
  const workspace = await cluster.workspace()
  const caller = await workspace.caller()
  let nonce = 0
  for (const pair of [
    [1, 2],
    [2, 3],
    [3, 1],
  ] as const) {
    const order = await transfer(caller, {
      asset: 'ETH',
      amount: 0.5,
      destination_address: SINK_ETH,
    })
    const unsigned = eth([1, ETH.chain_index, 0], {
      value: 500_000_000_000_000_000n,
      nonce: nonce++,
    })
    const { status, body } = await workspace.sign(pay(order), unsigned, pair)
    assert.equal(status, 200, JSON.stringify(body))
  }
}

const skip = withoutToken || withoutBao

test(
  'nodes with passphrase, token or Vault sign; if Vault fails, only starting nodes wait',
  { skip },
  async () => {
    const bao: Bao = await startBao(folder)
    ended.push(bao.stop)
    await bao.admin('POST', 'transit/keys/node-3', { type: 'aes256-gcm96' })
    const tokenFile = await bao.tokenFile('node-3')
    const { module, token, pinFile, conf } = makeToken(folder, 'custody')
    process.env['SOFTHSM2_CONF'] = conf
    const cluster = new SignerCluster()
    ended.push(() => cluster.stop())
    await createDataDirs(cluster.home, await freePorts(3))
    cluster.peers = JSON.parse(readFileSync(join(cluster.home, 'platform', 'peers.json'), 'utf8'))
    const homeOf = (node: number): string => join(cluster.home, `node-${node}`)
    const pkcs11 = `pkcs11:module=${module},token=${token},key=node-2,id=02,pin_file=${pinFile}`
    assert.equal(kek(['keygen', '--kek', pkcs11]).status, 0)
    const providers = [
      `passphrase:file=${passphrase}`,
      pkcs11,
      `vault:address=${bao.address},key=node-3,token_file=${tokenFile}`,
    ]
    for (const [at, provider] of providers.entries()) {
      if (at > 0) assert.equal(kek(['check', '--kek', provider]).status, 0)
      const { status, stdout, stderr } = kek([
        'rotate',
        '--home',
        homeOf(at + 1),
        '--kek',
        provider,
      ])
      assert.equal(status, 0, stderr)
      const { keys, earlier, moved, lost } = JSON.parse(stdout)
      assert.deepEqual(
        [keys.length, keys[0].provider, keys[0].shares, earlier, lost],
        [1, provider.split(':')[0], moved, null, 0],
      )
      assert.ok(!existsSync(join(homeOf(at + 1), 'kek')), 'the file that held the key is gone')
    }
    await Promise.all([1, 2, 3].map((node) => cluster.run(node)))
    await signsByEveryPair(cluster)

    await bao.admin('PUT', 'sys/seal')
    await signsByEveryPair(cluster)
    await cluster.kill(3)
    let output = ''
    const starting = runNode(homeOf(3), (text) => {
      output += text
    })
    starting.then(
      (child) => {
        cluster.processes.set(3, child)
      },
      () => {},
    )
    while (!output.includes('waiting for the key-encryption key'))
      await new Promise((resolve) => {
        setTimeout(resolve, 20)
      })
    assert.match(output, /vault: sealed/)
    const { socket } = cluster.peers.nodes[2]!
    const ask = (): Promise<Record<string, unknown>> =>
      new Promise((resolve, reject) => {
        request({ socketPath: socket, method: 'POST', path: '/status' }, (response) => {
          let text = ''
          response
            .setEncoding('utf8')
            .on('data', (chunk: string) => {
              text += chunk
            })
            .on('end', () => {
              resolve(JSON.parse(text))
            })
        })
          .on('error', reject)
          .end('{}')
      })
    // Waits for the log line, which comes before the socket exists. Until then there is no socket,
    // or the socket of the killed node, on which no process listens.
    const heardFrom = async (): Promise<Record<string, unknown>> => {
      for (;;) {
        try {
          return await ask()
        } catch (error) {
          assert.match(String((error as NodeJS.ErrnoException).code), /^(ENOENT|ECONNREFUSED)$/)
          await new Promise((resolve) => {
            setTimeout(resolve, 20)
          })
        }
      }
    }
    const { ready, waiting_for: waitingFor } = await heardFrom()
    assert.deepEqual([ready, waitingFor], [false, 'vault: sealed'])
    // The keys of a running node cannot be rotated. This node is not running yet, and the two
    // others sign.
    assert.match(kek(['rotate', '--home', homeOf(1)]).stderr, /is running/)
    await bao.unseal()
    await starting
    await signsByEveryPair(cluster)

    await cluster.kill(3)
    writeFileSync(tokenFile, 'not-a-token-any-more\n')
    await assert.rejects(runNode(homeOf(3)), /permission denied: token_file/)
    await cluster.kill(2)
    writeFileSync(pinFile, '000000\n')
    await assert.rejects(runNode(homeOf(2)), /pkcs11: pin_file/)
  },
)

test('a data directory of an earlier version signs unchanged and can be migrated', async () => {
  const cluster = new SignerCluster()
  ended.push(() => cluster.stop())
  await createDataDirs(cluster.home, await freePorts(3), 'own')
  cluster.peers = JSON.parse(readFileSync(join(cluster.home, 'platform', 'peers.json'), 'utf8'))
  process.env['CUSTODY_SIGNER_PASSPHRASE_FILE'] = passphrase
  for (const node of [1, 2, 3]) {
    const home = join(cluster.home, `node-${node}`)
    rmSync(join(home, 'keys.json'))
    const config = JSON.parse(readFileSync(join(home, 'config.json'), 'utf8'))
    config.pool = { secp256k1: 1, ed25519: 0 }
    config.kek =
      node === 3 ? { kind: 'passphrase', salt: '07'.repeat(16) } : { kind: 'file', path: 'kek' }
    if (node === 3) rmSync(join(home, 'kek'))
    writeFileSync(join(home, 'config.json'), JSON.stringify(config))
  }
  await Promise.all([1, 2, 3].map((node) => cluster.run(node)))
  await signsByEveryPair(cluster)
  for (const node of [1, 3]) {
    const home = join(cluster.home, `node-${node}`)
    await cluster.kill(node, 'SIGTERM')
    const before = keyStatus(home)
    assert.ok(before.earlier!.shares > 0)
    assert.deepEqual(
      [...readShares(join(home, 'record.shares'))].map((each) => sealedUnder(each.sealedShare)),
      Array(before.earlier!.shares).fill(null),
    )
    const { moved, status } = await rotate(home, byPassphrase, process.env)
    assert.deepEqual(
      [moved, status.earlier, status.keys.length, status.keys[0]!.shares],
      [before.earlier!.shares, null, 1, before.earlier!.shares],
    )
    assert.deepEqual(JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')).kek, {
      kind: 'wrapped',
    })
    assert.ok(!existsSync(join(home, 'kek')))
    await cluster.run(node)
  }
  await signsByEveryPair(cluster)
})

const byFile = { kind: 'file' as const, path: 'kek-2' }

/**
 * Runs a rotation in a process that kills itself at the given step. @returns the exit status; null:
 * the process killed itself
 */
function killedAt(home: string, at: number): number | null {
  const script = `
    import { rotate } from ${JSON.stringify(join(import.meta.dirname, './rotate.ts'))}
    let left = ${at}
    await rotate(${JSON.stringify(home)}, ${JSON.stringify(byFile)}, process.env, () => { if (left-- === 0) process.kill(process.pid, 'SIGKILL') })`
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  if (signal !== 'SIGKILL') assert.equal(status, 0, stderr)
  return signal === 'SIGKILL' ? null : status
}

test('a key rotation that is killed at any step loses no share, and the next one finishes it', async () => {
  const parent = join(folder, 'killed')
  await createDataDirs(parent, await freePorts(3))
  const original = join(parent, 'node-1')
  // Three shares are sufficient for this test.
  for (const name of readdirSync(join(original, 'record.shares')).sort().slice(0, -3))
    rmSync(join(original, 'record.shares', name))
  const shares = await opens(original)
  assert.equal(shares, 3)
  for (let at = 0; ; at++) {
    const home = join(folder, `killed-${at}`)
    copyOf(original, home)
    const status = killedAt(home, at)
    assert.equal(await opens(home), shares, `step ${at}`)
    const {
      status: { keys, lost },
    } = await rotate(home, byFile, process.env)
    assert.deepEqual(
      [keys.length, keys[0]!.shares, keys[0]!.kek_id, lost],
      [1, shares, 'file:kek-2', 0],
      `step ${at}`,
    )
    assert.equal(await opens(home), shares)
    assert.ok(!existsSync(join(home, 'kek')))
    if (status === 0) {
      assert.equal(at, shares + 7, 'every step was played')
      break
    }
  }
})

test('a waiting node ends when its standard input closes, as every node does', async () => {
  const parent = join(folder, 'waiting')
  await createDataDirs(parent, await freePorts(3))
  const home = join(parent, 'node-1')
  const file = JSON.parse(readFileSync(join(home, 'keys.json'), 'utf8'))
  const [nobody] = await freePorts(1)
  const vault = {
    kind: 'vault',
    address: `http://127.0.0.1:${nobody}`,
    mount: 'transit',
    key: 'k',
    auth_mount: 'approle',
    token_file: passphrase,
  }
  writeFileSync(
    join(home, 'keys.json'),
    JSON.stringify({
      ...file,
      keys: [{ ...file.keys[0], kek: vault, kek_version: '1', wrapped: 'vault:v1:AAAA' }],
    }),
  )
  // The specification of the token contains spaces: this is reported before any device is
  // contacted.
  const run = () =>
    spawnSync(process.execPath, [join(import.meta.dirname, '../main.ts'), '--home', home], {
      encoding: 'utf8',
      input: '',
      timeout: HANG_MS,
    })
  const refused = run()
  assert.equal(refused.status, 1)
  assert.match(refused.stderr, /vault: token_file: does not contain a token/)
  vault.token_file = fileOf('token', 'a-token\n')
  writeFileSync(
    join(home, 'keys.json'),
    JSON.stringify({
      ...file,
      keys: [{ ...file.keys[0], kek: vault, kek_version: '1', wrapped: 'vault:v1:AAAA' }],
    }),
  )
  const { status, signal, stdout } = run()
  assert.deepEqual([status, signal, stdout], [0, null, ''])
})

test('refuses invalid settings before anything is written', async () => {
  const parent = join(folder, 'refused')
  await createDataDirs(parent, await freePorts(3))
  const home = join(parent, 'node-2')
  const wrong = { ...byPassphrase, file: fileOf('short', 'short\n') }
  const written = () => [
    readFileSync(join(home, 'keys.json'), 'utf8'),
    readdirSync(home).sort().join(),
  ]
  await opens(home)
  await rotate(home, { kind: 'file', path: 'kek' }, process.env)
  // Under any name of its path, the file that wraps the key is never the one that is deleted.
  for (const path of [join(home, 'kek'), './kek']) {
    await rotate(home, { kind: 'file', path }, process.env)
    await opens(home)
  }
  const before = written()
  await assert.rejects(rotate(home, wrong, process.env), /12 characters/)
  assert.deepEqual(written(), before)
  // The key file is replaced by another node's: the error says that the wrapped key belongs to
  // another node.
  copyFileSync(join(parent, 'node-1', 'kek'), join(home, 'kek'))
  await assert.rejects(rotate(home, byPassphrase, process.env), /not the key that wrapped/)
  copyFileSync(join(parent, 'node-1', 'keys.json'), join(home, 'keys.json'))
  await assert.rejects(openDataDir(home, loadConfig(home), process.env), /belongs to another home/)
  rmSync(join(home, 'keys.json'))
  await assert.rejects(openDataDir(home, loadConfig(home), process.env), /keys\.json is missing/)
  assert.match(
    kek(['rotate', '--home', home, '--kek', 'usb:x=1']).stderr,
    /--kek: the provider must be one of/,
  )
  assert.match(kek([]).stderr, /Usage/)
})

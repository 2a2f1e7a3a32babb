import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { pinOf } from '@custody/request-auth/pinned'
import { loadConfig } from '../config.ts'
import { makeCertificate, makeTlsKey } from '../set-up/certificate.ts'
import { check } from '../set-up/check.ts'
import { certificateStatus, renewCertificate } from '../set-up/renew.ts'
import { setup } from '../setup.ts'
import { Link } from '../transport/client.ts'
import { OwnCertificate } from '../transport/own-certificate.ts'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  signed,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * Expiry and renewal of the TLS certificates of nodes and platform. Dates are relative to the clock
 * or to an injected one.
 */
const DAY_MS = 86_400_000
const PARTIES = ['platform', 'node-1', 'node-2', 'node-3']
const folder = mkdtempSync(join(tmpdir(), 'signer-certificates-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const read = (...names: string[]): string => readFileSync(join(...names), 'utf8')

/** Replaces the certificate of a home by one of the same key that expired five days ago. */
async function expire(home: string): Promise<void> {
  const certificate = await makeCertificate({
    key: read(home, 'tls.key'),
    name: 'custody test',
    nowMs: Date.now() - 10 * DAY_MS,
    days: 5,
  })
  writeFileSync(join(home, 'tls.crt'), certificate)
}

/** Returns the certificate that a node presents on a new connection. */
function presentedBy(port: number): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host: '127.0.0.1', port, rejectUnauthorized: false, minVersion: 'TLSv1.3' },
      () => {
        resolve(socket.getPeerX509Certificate() as X509Certificate)
        socket.destroy()
      },
    )
    socket.on('error', reject)
  })
}

async function untilPresented(port: number, home: string): Promise<void> {
  const { fingerprint256 } = new X509Certificate(read(home, 'tls.crt'))
  while ((await presentedBy(port)).fingerprint256 !== fingerprint256) await sleep(50)
}

/** Returns the SHA-256 of each file below a folder that a renewal must not change. */
function unchangedFiles(home: string): Record<string, string> {
  const files = readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !/tls\.crt$|record\.sqlite|heads/.test(path))
  return Object.fromEntries(
    files.map((path) => [
      relative(home, path),
      createHash('sha256').update(readFileSync(path)).digest('hex'),
    ]),
  )
}

const nonces = new Map<string, number>()
/** Requests the signature of a new payment, at the next nonce of the workspace, from a pair. */
async function sign(
  workspace: Workspace,
  caller: Caller,
  pair: readonly [number, number],
): Promise<Answer> {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const nonce = nonces.get(workspace.name) ?? 0
  const answer = await workspace.sign(
    pay(request),
    eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce }),
    pair,
  )
  if (answer.status === 200) nonces.set(workspace.name, nonce + 1)
  return answer
}

test('peers and platform refuse an expired certificate, and accept the renewed one live', async () => {
  const cluster = await SignerCluster.start({
    beforeStart: async (parent) => {
      for (const name of PARTIES) await expire(join(parent, name))
    },
  })
  try {
    const homeOf = (name: string) => join(cluster.home, name)
    const call = (from: string, to: number) => {
      const [key, cert] = [read(homeOf(from), 'tls.key'), read(homeOf(from), 'tls.crt')]
      return cluster.send(to, 'GET', '/hello', null, { key, cert })
    }
    const link = async (from: number, to: number) => {
      const config = loadConfig(homeOf(`node-${from}`))
      const each = new Link(
        config,
        config.peerList.find(({ node }) => node === to)!,
        Date.now,
      )
      try {
        return await each.post('/peer/ping', Buffer.from('{}'), 5000, 1e6)
      } finally {
        each.close()
      }
    }
    await assert.rejects(
      call('platform', 1),
      /expired on \d{4}-\d\d-\d\d/,
      'the platform refuses the node',
    )
    await assert.rejects(
      link(2, 1),
      /peer node 1: the TLS certificate expired on/,
      'a peer refuses the node',
    )

    await renewCertificate(homeOf('node-1'))
    await untilPresented(cluster.peers.nodes[0]!.port, homeOf('node-1'))
    cluster.logs = ''
    await assert.rejects(call('platform', 1), /ECONNRESET|hang up/, 'the node refuses the platform')
    await assert.rejects(
      link(2, 1),
      /peer node 1: .*(ECONNRESET|hang up)/,
      'the node refuses a peer',
    )
    assert.match(cluster.logs, /handshake rejected.*the TLS certificate expired on/)

    for (const name of ['platform', 'node-2', 'node-3']) await renewCertificate(homeOf(name))
    for (const { node, port } of cluster.peers.nodes)
      await untilPresented(port, homeOf(`node-${node}`))
    assert.equal((await call('platform', 1)).status, 200)
    assert.match(
      String(await link(2, 1)),
      /NOT_AUTHENTIC|BAD_REQUEST|error/,
      'the peer answers; the empty message itself is refused',
    )
    assert.match(cluster.logs, /TLS certificate renewed/)
    const workspace = await cluster.workspace()
    const caller = await workspace.caller()
    for (const pair of [
      [1, 2],
      [2, 3],
      [3, 1],
    ] as const)
      signed(await sign(workspace, caller, pair))
  } finally {
    await cluster.stop()
  }
})

test('renewing all certificates one by one keeps the identities and interrupts no signature', async () => {
  const cluster = await SignerCluster.start()
  try {
    const workspace = await cluster.workspace()
    const caller = await workspace.caller()
    const before = Object.fromEntries(
      PARTIES.map((name) => [name, unchangedFiles(join(cluster.home, name))]),
    )
    const old = new Map(
      await Promise.all(
        cluster.peers.nodes.map(
          async ({ node, port }) => [node, (await presentedBy(port)).fingerprint256] as const,
        ),
      ),
    )
    for (const { node, home, port } of cluster.peers.nodes) {
      let isRenewed = false
      const others = [1, 2, 3].filter((each) => each !== node) as [number, number]
      const signing = (async () => {
        let count = 0
        // All pairs sign while the certificate is replaced.
        for (let round = 0; !isRenewed || round < 3; round++) {
          for (const pair of [others, [node, others[0]], [others[1], node]] as [number, number][]) {
            signed(await sign(workspace, caller, pair))
            count++
          }
        }
        return count
      })()
      const renewing = (async () => {
        await renewCertificate(home)
        await untilPresented(port, home)
      })().finally(() => {
        isRenewed = true
      })
      const [count] = await Promise.all([signing, renewing])
      assert.ok(count >= 9)
    }
    await renewCertificate(join(cluster.home, 'platform'))
    for (const agent of cluster.agents.values()) agent.destroy()
    cluster.agents.clear()
    // A restart closes all earlier connections. The node that restarts is not needed during the
    // restart.
    for (const { node, home, port } of cluster.peers.nodes) {
      const [a, b] = [1, 2, 3].filter((each) => each !== node) as [number, number]
      const restarted = cluster.restartHere(node)
      signed(await sign(workspace, caller, [a, b]))
      await restarted
      for (const pair of [
        [node, a],
        [b, node],
      ] as const) {
        for (;;) {
          const answer = await sign(workspace, caller, pair)
          // A pair that has not reconnected to the node yet responds that the caller should try
          // another pair.
          if (answer.status !== 503) {
            signed(answer)
            break
          }
          await sleep(50)
        }
      }
      const presented = await presentedBy(port)
      assert.notEqual(presented.fingerprint256, old.get(node))
      assert.equal(
        presented.fingerprint256,
        new X509Certificate(read(home, 'tls.crt')).fingerprint256,
      )
      const { body } = await cluster.get(node, '/status')
      assert.equal(body.certificate_expires_at, presented.validToDate.toISOString())
    }
    for (const name of PARTIES)
      assert.deepEqual(
        unchangedFiles(join(cluster.home, name)),
        before[name],
        `${name}: nothing but the certificate changed`,
      )
    const { lines, ok } = await check(join(cluster.home, 'platform'))
    assert.ok(ok, lines.join('\n'))
  } finally {
    await cluster.stop()
  }
})

test('attack: no call is sent to a server with another key, even with the right name', async () => {
  const parent = join(folder, 'other-key')
  await setup({ home: parent, ports: [1, 2, 3], mode: 'local' })
  const config = loadConfig(join(parent, 'node-1'))
  const peer = config.peerList.find(({ node }) => node === 2)!
  const key = makeTlsKey()
  const forged = await makeCertificate({ key, name: 'custody signer 2' })
  for (const cert of [forged, `${forged}${peer.certificate}`]) {
    let bytes = 0
    const server: Server = createServer({ key, cert, requestCert: true, rejectUnauthorized: false })
    server.on('secureConnection', (socket: TLSSocket) => {
      socket
        .on('data', (chunk: Buffer) => {
          bytes += chunk.length
        })
        .on('error', () => {})
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const link = new Link(
      config,
      { ...peer, port: (server.address() as AddressInfo).port },
      Date.now,
    )
    try {
      await assert.rejects(
        link.post('/peer/ping', Buffer.from('{}'), 5000, 1e6),
        /another key than the pinned one/,
      )
    } finally {
      link.close()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    }
    assert.equal(bytes, 0)
  }
})

test('a renewal that finds an error reports it and changes nothing', async () => {
  const parent = join(folder, 'refused')
  await setup({ home: parent, ports: [1, 2, 3], mode: 'local' })
  const home = join(parent, 'node-1')
  const before = read(home, 'tls.crt')
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, '../tls.ts'), ...args], {
      encoding: 'utf8',
    })
  for (const [args, said] of [
    [[], /Usage: custody tls status/],
    [['rotate', '--home', home], /Usage/],
    [['renew'], /--home: is required/],
    [['renew', '--home', folder], /--home: .*tls\.key does not exist/],
    [['renew', '--home', home, '--days', '0'], /--days: must be a whole number from 1 to 7300/],
    [['renew', '--home', home, '--days', 'x'], /--days: must be a whole number/],
    [['renew', '--home', home, '--days', '7301'], /--days: must be/],
    [['status', '--home', home, '--days', '1'], /--days: is allowed for tls renew only; omit it/],
  ] as const) {
    const { status, stdout, stderr } = run(...args)
    assert.deepEqual([status, stdout], [1, ''], args.join(' '))
    assert.match(stderr, said)
    assert.doesNotMatch(stderr, /PRIVATE/)
  }
  assert.equal(read(home, 'tls.crt'), before)
  writeFileSync(join(home, 'tls.key'), read(parent, 'node-2', 'tls.key'))
  await assert.rejects(renewCertificate(home), /tls\.key and .*tls\.crt belong to different keys/)
  writeFileSync(join(home, 'tls.key'), 'no key')
  await assert.rejects(renewCertificate(home), /tls\.key is not a private key/)
  writeFileSync(join(home, 'tls.crt'), 'no certificate')
  await assert.rejects(renewCertificate(home), /tls\.crt is not a certificate/)

  const other = join(parent, 'node-2')
  const { status, stdout } = run('renew', '--home', other, '--days', '90')
  assert.equal(status, 0)
  assert.equal((JSON.parse(stdout) as { expires_in_days: number }).expires_in_days, 89)
  assert.equal(statSync(join(other, 'tls.crt')).mode & 0o777, 0o600)
  assert.equal(certificateStatus(other).name, 'custody signer 2')
})

test('a certificate made in 2040 expires in 2060, with the date format for years after 2049', async () => {
  const nowMs = Date.UTC(2040, 0, 1)
  const key = makeTlsKey()
  const { validToDate, validFromDate } = new X509Certificate(
    await makeCertificate({ key, name: 'x', nowMs }),
  )
  assert.equal(validToDate.getTime(), nowMs + 7300 * DAY_MS)
  assert.equal(validFromDate.getTime(), nowMs - DAY_MS)
})

test('a node starts after a certificate renewal that was killed at any step', async () => {
  const cluster = await SignerCluster.start()
  try {
    const { home, port } = cluster.peers.nodes[0]!
    const text = read(home, 'tls.crt')
    // The process was killed while it wrote the draft, and after it had renamed the draft.
    writeFileSync(join(home, 'tls.crt.draft'), text.slice(0, 100))
    await cluster.restartHere(1)
    assert.equal((await presentedBy(port)).fingerprint256, new X509Certificate(text).fingerprint256)
    const renewed = await renewCertificate(home)
    await cluster.restartHere(1)
    assert.equal((await presentedBy(port)).validToDate.toISOString(), renewed.expires_at)
    assert.ok(!readdirSync(home).includes('tls.crt.draft'))
  } finally {
    await cluster.stop()
  }
})

test('a running node loads a renewed certificate, and warns 30 days before expiry', async () => {
  const parent = join(folder, 'watch')
  await setup({ home: parent, ports: [1, 2, 3], mode: 'local' })
  const home = join(parent, 'node-1')
  const startMs = Date.UTC(2030, 0, 1)
  await renewCertificate(home, 100, startMs)
  const config = loadConfig(home)
  const first = config.tlsCertificate
  let nowMs = startMs
  const presented: unknown[] = []
  let lines: string[] = []
  const own = new OwnCertificate({
    config,
    now: () => nowMs,
    log: (level, message) => {
      lines.push(`${level} ${message}`)
    },
    server: {
      setSecureContext: ({ cert }: { cert: unknown }) => {
        presented.push(cert)
      },
    } as unknown as Server,
  })
  const linesAt = (days: number): string[] => {
    lines = []
    nowMs = startMs + days * DAY_MS
    own.check()
    return lines
  }
  assert.deepEqual(linesAt(69), [])
  assert.deepEqual(linesAt(71), ['warn the TLS certificate expires soon'])
  assert.deepEqual(linesAt(71.5), [], 'once a day')
  assert.deepEqual(linesAt(101), [
    'alert the TLS certificate has expired: the platform and the peers reject this node',
  ])

  writeFileSync(join(home, 'tls.crt'), read(parent, 'node-2', 'tls.crt'))
  assert.deepEqual(linesAt(101.1), [
    'error tls.crt was changed and cannot be used; the node presents the previous one',
  ])
  rmSync(join(home, 'tls.crt'))
  assert.deepEqual(linesAt(101.2), [])
  assert.deepEqual([presented, config.tlsCertificate], [[], first])

  writeFileSync(join(home, 'tls.crt'), first)
  const { expires_at } = await renewCertificate(home, 200, nowMs)
  assert.deepEqual(linesAt(101.3), ['info TLS certificate renewed'])
  assert.deepEqual(presented, [config.tlsCertificate])
  assert.equal(new X509Certificate(config.tlsCertificate).validToDate.toISOString(), expires_at)
  assert.equal(pinOf(config.tlsCertificate), pinOf(first))
})

test('the configuration check reports certificates that expire soon or have expired', async () => {
  const cluster = await SignerCluster.start({
    beforeStart: async (parent) => {
      await renewCertificate(join(parent, 'node-2'), 20)
      await expire(join(parent, 'node-3'))
    },
  })
  try {
    const { lines, ok } = await check(join(cluster.home, 'platform'))
    const text = lines.join('\n')
    assert.ok(!ok)
    assert.match(text, /signer node 1 .*: ok$/m)
    assert.match(text, /signer node 2 .*: ok$/m, 'it works until the end')
    assert.match(
      text,
      /signer node 2 .*: the TLS certificate expires on \S+; on its host, run: custody tls renew/,
    )
    assert.match(text, /signer node 3 .*: the TLS certificate expired on \S+; on its host, run/)
    await expire(join(cluster.home, 'platform'))
    assert.match(
      (await check(join(cluster.home, 'platform'))).lines.join('\n'),
      /this host: the TLS certificate expired on \S+; run: custody tls renew --home/,
    )
  } finally {
    await cluster.stop()
  }
})

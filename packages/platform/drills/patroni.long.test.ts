import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Cluster, whyNoCluster } from '../testing/chaos/cluster.ts'
import type { Host } from '../testing/hosts/network-hosts.ts'

/**
 * Tests with an attacker in the network of the database hosts, against Patroni and etcd with the
 * files of deploy/patroni: `PATCH /config` can set archive_command, and so can a key of etcd. Each
 * request is also made with all required credentials, to show that a refusal is caused by the
 * missing one.
 */
const missing = whyNoCluster()

async function curl(host: Host, ...words: string[]): Promise<{ status: number; body: string }> {
  const { stdout } = await host
    .run('curl', ['-s', '-m', '10', '-w', '\n%{http_code}', ...words])
    .catch((error: unknown) => ({ stdout: `${String(error)}\n0` }))
  const end = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) }
}

test(
  'Patroni and etcd of deploy/patroni refuse clients without certificate or password',
  { skip: missing ?? false },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'custody-patroni-'))
    const cluster = new Cluster(folder)
    try {
      await cluster.start()
      const [pg1, pg2] = cluster.members as [Host, Host, Host]
      const attacker = cluster.proxy
      const marker = join(folder, 'marker')
      const body = JSON.stringify({
        postgresql: { parameters: { archive_mode: 'on', archive_command: `touch ${marker}` } },
      })
      const api = `https://${pg1.address}:8008`
      const certificate = (host: Host): string[] => [
        '--cert',
        host.path('tls', 'host.crt'),
        '--key',
        host.path('tls', 'host.key'),
      ]
      const password = ['-u', `patroni:${cluster.restapiPassword}`]
      for (const [method, path] of [
        ['PATCH', '/config'],
        ['PUT', '/config'],
        ['POST', '/restart'],
        ['POST', '/reload'],
        ['POST', '/reinitialize'],
        ['POST', '/switchover'],
        ['POST', '/failover'],
      ] as const) {
        const send = (host: Host, ...words: string[]) =>
          curl(host, '-k', '-X', method, '-d', body, ...words, `${api}${path}`)
        const outside = await send(attacker)
        assert.deepEqual(
          [outside.status, outside.body],
          [403, 'Access is denied'],
          `${method} ${path} from the platform's host`,
        )
        const response = await send(attacker, ...password, ...certificate(pg2))
        assert.deepEqual(
          [response.status, response.body],
          [403, 'Access is denied'],
          `${method} ${path} with a stolen certificate and the password`,
        )
        const bare = await send(pg2)
        assert.deepEqual(
          [bare.status, bare.body],
          [403, 'client certificate required'],
          `${method} ${path} from a member's address`,
        )
        const guessed = await send(pg2, ...certificate(pg2), '-u', 'patroni:patroni')
        assert.deepEqual(
          [guessed.status, guessed.body],
          [401, 'not authenticated'],
          `${method} ${path} with another password`,
        )
      }
      assert.equal(
        (await curl(attacker, '-X', 'PATCH', '-d', body, `http://${pg1.address}:8008/config`))
          .status,
        0,
        'without TLS',
      )
      const own = await curl(
        pg2,
        '--cacert',
        pg2.path('tls', 'ca.crt'),
        '-X',
        'PATCH',
        '-d',
        '{"loop_wait": 5}',
        ...certificate(pg2),
        ...password,
        `${api}/config`,
      )
      assert.equal(own.status, 200, own.body)
      const read = await curl(attacker, '--cacert', attacker.path('tls', 'ca.crt'), `${api}/health`)
      assert.equal(read.status, 200, read.body)

      const key = `${pg1.address}:2379/v2/keys/service/custody/config`
      const value = ['-X', 'PUT', '--data-urlencode', `value=${body}`]
      for (const [what, words] of [
        ['without TLS', [`http://${key}`]],
        ['without a certificate', ['-k', `https://${key}`]],
      ] as const) {
        const { status, body: answer } = await curl(attacker, ...value, ...words)
        assert.equal(status, 0, `etcd ${what}: ${answer}`)
      }
      assert.equal(
        (await curl(attacker, '-k', `https://${pg1.address}:2380/members`)).status,
        0,
        'etcd’s port for peers',
      )
      const held = await curl(
        pg2,
        '--cacert',
        pg2.path('tls', 'ca.crt'),
        ...certificate(pg2),
        `https://${key}`,
      )
      assert.equal(held.status, 200, held.body)
      assert.match(held.body, /synchronous_mode_strict/)
      assert.doesNotMatch(held.body, /archive_command/)
      assert.equal(existsSync(marker), false, 'a command ran')
      await assert.rejects(
        pg1.run('patroni', [pg1.path('patroni.yml')], {
          PATRONI_SUPERUSER_PASSWORD: 'a',
          PATRONI_REPLICATION_PASSWORD: 'b',
        }),
        /KeyError: 'password'/,
        'without PATRONI_RESTAPI_PASSWORD Patroni starts with an open API',
      )
    } finally {
      await cluster.remove()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)

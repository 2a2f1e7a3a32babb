import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

/** Tests of the examples of deploy/proxy, validated by nginx and Caddy themselves. */
const folder = mkdtempSync(join(tmpdir(), 'custody-proxy-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const example = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../../../../deploy/proxy', name), 'utf8')
const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin`, HOME: folder }
const missing = (program: string, word: string) =>
  spawnSync(program, [word], { env }).error
    ? `no ${program} here (Debian: apt-get install ${program})`
    : false

test('nginx accepts the example configuration', { skip: missing('nginx', '-v') }, () => {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=custody.example.com',
    '-keyout',
    key,
    '-out',
    certificate,
  ])
  assert.equal(made.status, 0, made.stderr.toString())
  const text = example('nginx.conf')
    .replace('/etc/ssl/custody/fullchain.pem', certificate)
    .replace('/etc/ssl/custody/privkey.pem', key)
    // The test opens no ports, and may run as an unprivileged user.
    .replaceAll(/listen (80|443)\b/g, `listen unix:${folder}/$1`)
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `pid ${folder}/nginx.pid;\nevents {}\nhttp {\naccess_log off;\n${places}\n${text}\n}\n`,
  )
  const read = spawnSync(
    'nginx',
    ['-t', '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')],
    { encoding: 'utf8', env },
  )
  assert.equal(read.status, 0, read.stderr)
})

test('Caddy accepts the example configuration', { skip: missing('caddy', 'version') }, () => {
  writeFileSync(join(folder, 'Caddyfile'), example('Caddyfile'))
  const read = spawnSync(
    'caddy',
    ['validate', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')],
    { encoding: 'utf8', env },
  )
  assert.equal(read.status, 0, read.stderr)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import {
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { read, ROOT } from '../packages/platform/testing/documents.ts'

/**
 * Checks files of deploy/ that cannot run here with their own linters, if the linters are
 * installed.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-deploy-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const isThere = (program: string) => spawnSync(program, ['--help']).error === undefined
const needs = (...programs: string[]) => {
  const missing = programs.filter((program) => !isThere(program))
  return { skip: missing.length > 0 ? `${missing.join(' and ')}: not installed` : false }
}
function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: ROOT })
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout
}

test('the Dockerfile copies only existing files, and pins the checkout’s Node version', () => {
  const text = read('deploy/docker/Dockerfile')
  const { optionalDependencies, scripts } = JSON.parse(read('package.json')) as {
    optionalDependencies: Record<string, string>
    scripts: Record<string, string>
  }
  for (const [, script = ''] of text.matchAll(/npm run (\S+)/g))
    assert.ok(script in scripts, `npm run ${script}`)
  const versions = [...new Set(Object.values(optionalDependencies))]
  assert.equal(versions.length, 1, 'one version of Node for all platforms')
  assert.ok(text.includes(`FROM node:${versions[0]}-`), 'the Node of package.json')
  for (const [, from = ''] of text.matchAll(/^COPY (packages\/\S+(?: packages\/\S+)*) \.\/?/gm)) {
    for (const path of from.split(' ')) assert.equal(globSync(path, { cwd: ROOT }).length, 1, path)
  }
  // The image must build the native files that a bundle contains and a checkout does not.
  for (const [addon] of read('scripts/bundle.mjs').matchAll(/packages\/[\w-]+\/native\/\w+\.node/g))
    assert.ok(text.includes(` ${addon}\n`), addon)
  const rust = /^rust-version = "([\d.]+)"/m.exec(read('packages/threshold/native/Cargo.toml'))?.[1]
  const image = /FROM rust:([\d.]+)-/.exec(text)?.[1] ?? ''
  assert.ok(
    rust === undefined || Number(image.split('.')[1]) >= Number(rust.split('.')[1]),
    `Rust ${image} is older than ${rust}`,
  )
})

test('every setting in a deployment file exists', () => {
  const documented = `${read('docs/settings.md')}${read('packages/signer/README.md')}${readFileSync(join(ROOT, 'packages/platform/src/core/settings/settings.ts'), 'utf8')}`
  const own = new Set(['CUSTODY_PLATFORM_IMAGE', 'CUSTODY_SIGNER_IMAGE', 'CUSTODY_SIGNER_ADDRESS'])
  let names = 0
  for (const file of globSync('deploy/{docker,helm,systemd}/**/*', {
    cwd: ROOT,
    withFileTypes: true,
  })) {
    if (!file.isFile()) continue
    for (const [name] of readFileSync(join(file.parentPath, file.name), 'utf8').matchAll(
      /\bCUSTODY_[A-Z_]+\b/g,
    )) {
      names++
      assert.ok(own.has(name) || documented.includes(name), `${file.name} names ${name}`)
    }
  }
  assert.ok(names > 10, `${names} names`)
})

test('hadolint finds no problem in the Dockerfile', needs('hadolint'), () => {
  run('hadolint', 'deploy/docker/Dockerfile')
})

/** Helm values that enable all scheduled jobs. */
const TIMERS = [
  'backup.enabled=true',
  'backup.image=custody-backup:1',
  'backup.claimName=backups',
  'ofac.enabled=true',
  'ofac.claimName=sanctions',
].flatMap((each) => ['--set', `timers.${each}`])

test(
  'helm renders the charts with any release name, and Kubernetes schemas accept the result',
  needs('helm', 'kubernetes-validate'),
  () => {
    const version = ['--kube-version', '1.31.0']
    const signer = ['--set', 'service.sourceRanges[0]=10.0.0.0/8']
    const variants = [
      ['custody', ...version],
      [
        'custody',
        ...version,
        '--set',
        'ingress.enabled=true',
        '--set',
        'ingress.tlsSecretName=tls',
        '--set',
        'metrics.allow=10.0.0.0/8',
      ],
      ['custody', ...version, ...TIMERS],
      ['custody-signer', ...version, ...signer],
      [
        'custody-signer',
        ...version,
        '--set',
        'waitForSetup=true',
        '--set',
        'service.type=ClusterIP',
      ],
    ]
    for (const [at, [chart = '', ...args]] of variants.entries()) {
      run(
        'helm',
        'lint',
        '--strict',
        `deploy/helm/${chart}`,
        ...args.slice(2).filter((each) => each !== '--kube-version'),
      )
      // YAML parses an unquoted y as true.
      writeFileSync(
        join(folder, `${at}.yaml`),
        run('helm', 'template', 'y', `deploy/helm/${chart}`, ...args),
      )
      run('kubernetes-validate', '-k', '1.31', '--strict', join(folder, `${at}.yaml`))
    }
    const open = spawnSync('helm', ['template', 'y', 'deploy/helm/custody-signer', ...version], {
      encoding: 'utf8',
      cwd: ROOT,
    })
    assert.match(open.stderr, /service\.sourceRanges: name the addresses/)
  },
)

/**
 * Returns the scalars of a YAML file of mappings and lists of scalars, by path (`restapi.listen`).
 * A list is returned as its items, joined by commas.
 */
function scalarsOf(file: string): Map<string, string> {
  const matches = new Map<string, string>()
  const path: { indent: number; name: string }[] = []
  for (const line of read(file)
    .split('\n')
    .filter((each) => !/^\s*(?:#|$)/.test(each))) {
    const [, spaces = '', item] = /^( *)(?:- (.*))?/.exec(line) ?? []
    while (
      path.length > 0 &&
      (path.at(-1)?.indent as number) >= spaces.length + (item === undefined ? 0 : 1)
    )
      path.pop()
    const key = path.map(({ name }) => name).join('.')
    if (item !== undefined) {
      matches.set(key, [matches.get(key), item].filter(Boolean).join(','))
      continue
    }
    const [, name, value] = /^ *([\w-]+):(?: +(.*))?$/.exec(line) ?? []
    assert.ok(name !== undefined, `${file}: "${line}" is not a line that this test reads`)
    path.push({ indent: spaces.length, name })
    if (value !== undefined)
      matches.set([key, name].filter(Boolean).join('.'), value.replace(/^'(.*)'$/, '$1'))
  }
  return matches
}

test('etcd in deploy/patroni answers over TLS only, and only to clients with a certificate', () => {
  const etcd = scalarsOf('deploy/patroni/etcd.yml')
  const urls = [...etcd].filter(([name]) => /-urls$|^initial-cluster$/.test(name))
  assert.deepEqual(urls.map(([name]) => name).sort(), [
    'advertise-client-urls',
    'initial-advertise-peer-urls',
    'initial-cluster',
    'listen-client-urls',
    'listen-peer-urls',
  ])
  for (const [name, value] of urls) {
    for (const url of value.split(','))
      assert.match(url, /^(?:pg\d=)?https:\/\/ADDRESS\d?:\d+$/, name)
  }
  for (const side of ['client', 'peer']) {
    const of = (name: string) => etcd.get(`${side}-transport-security.${name}`)
    assert.equal(of('client-cert-auth'), 'true', side)
    for (const name of ['cert-file', 'key-file', 'trusted-ca-file'])
      assert.match(of(name) ?? '', /^\/etc\/custody\/tls\/\w+\.(?:crt|key)$/, `${side} ${name}`)
    assert.equal(of('auto-tls'), undefined, side)
  }
})

test('Patroni in deploy/patroni authenticates every change, and its files contain no password', () => {
  const patroni = scalarsOf('deploy/patroni/patroni.yml')
  for (const name of ['certfile', 'keyfile', 'cafile'])
    assert.match(patroni.get(`restapi.${name}`) ?? '', /^\/etc\/custody\/tls\//, name)
  assert.ok(
    ['optional', 'required'].includes(patroni.get('restapi.verify_client') ?? ''),
    'changes need a client certificate',
  )
  assert.equal(patroni.get('restapi.allowlist'), 'ADDRESS1,ADDRESS2,ADDRESS3')
  // With a user name but no password Patroni does not start (patroni.long.test.ts). Without a user
  // name its API would be open.
  assert.equal(patroni.get('restapi.authentication.username'), 'patroni')
  assert.equal(patroni.get('etcd.protocol'), 'https')
  for (const name of [
    'etcd.cacert',
    'etcd.cert',
    'etcd.key',
    'ctl.cacert',
    'ctl.certfile',
    'ctl.keyfile',
  ]) {
    assert.match(patroni.get(name) ?? '', /^\/etc\/custody\/tls\//, name)
  }
  assert.deepEqual(
    [...patroni.keys()].filter((name) => /insecure|password$/.test(name)),
    [],
  )
  for (const rule of patroni.get('postgresql.pg_hba')?.split(',') ?? ['none'])
    assert.match(rule, / scram-sha-256$/)
  const environment = read('deploy/patroni/patroni.env.example')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.deepEqual(
    environment,
    ['PATRONI_RESTAPI_PASSWORD=', 'PATRONI_SUPERUSER_PASSWORD=', 'PATRONI_REPLICATION_PASSWORD='],
    'and none is preset',
  )
  assert.match(
    read('deploy/patroni/haproxy.cfg'),
    /^ {2}default-server .* check-ssl verify required ca-file \S+$/m,
  )
})

test(
  'certificates.sh creates a server and client certificate per database host from one CA',
  needs('openssl'),
  () => {
    const to = join(folder, 'authority')
    const make = (...hosts: string[]) => run('sh', 'deploy/patroni/certificates.sh', to, ...hosts)
    make('pg1=10.0.0.1', 'pg2=10.0.0.2')
    const first = readFileSync(join(to, 'pg1.crt'), 'utf8')
    make('pg1=10.0.0.1', 'pg3=10.0.0.3')
    assert.equal(readFileSync(join(to, 'pg1.crt'), 'utf8'), first, 'one that is there stays')
    const authority = new X509Certificate(readFileSync(join(to, 'ca.crt')))
    assert.equal(authority.ca, true)
    for (const at of [1, 2, 3]) {
      const certificate = new X509Certificate(readFileSync(join(to, `pg${at}.crt`)))
      assert.ok(
        certificate.verify(authority.publicKey) &&
          certificate.checkPrivateKey(createPrivateKey(readFileSync(join(to, `pg${at}.key`)))),
      )
      assert.deepEqual(
        [certificate.ca, certificate.checkIP(`10.0.0.${at}`), certificate.checkHost(`pg${at}`)],
        [false, `10.0.0.${at}`, `pg${at}`],
      )
      assert.deepEqual([...certificate.keyUsage].sort(), ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
    }
    for (const name of readdirSync(to).filter((each) => each.endsWith('.key')))
      assert.equal(statSync(join(to, name)).mode & 0o077, 0, name)
  },
)

test(
  'the chart creates CronJobs only if enabled, and forbids concurrent runs',
  needs('helm'),
  () => {
    const template = (...args: string[]) =>
      spawnSync(
        'helm',
        ['template', 'y', 'deploy/helm/custody', '--kube-version', '1.31.0', ...args],
        { encoding: 'utf8', cwd: ROOT },
      )
    assert.doesNotMatch(template().stdout, /kind: CronJob|pods\/exec|\/sanctions/)
    const { stdout, stderr } = template(...TIMERS)
    const jobs = stdout.split(/^---$/m).filter((each) => each.includes('kind: CronJob'))
    assert.deepEqual(
      jobs.map((each) => /^ {2}name: "(.*)"$/m.exec(each)?.[1]).sort(),
      ['y-backup', 'y-ofac'],
      stderr,
    )
    for (const job of jobs) {
      for (const line of [
        'concurrencyPolicy: Forbid',
        'backoffLimit: 0',
        'timeZone: Etc/UTC',
        'restartPolicy: Never',
        'readOnlyRootFilesystem: true',
        'runAsNonRoot: true',
      ]) {
        assert.ok(job.includes(line), `${line} in ${job}`)
      }
    }
    // No job may ask the API server of Kubernetes for anything.
    assert.doesNotMatch(stdout, /automountServiceAccountToken: true|kind: Role|pods\/exec/)
    // Every process reads the list that the job writes.
    assert.equal(
      stdout.split('{name: CUSTODY_OFAC_FILE, value: /sanctions/ofac-addresses.json}').length - 1,
      4,
    )
    for (const [missing, reason] of [
      ['backup.image', /timers\.backup\.image: /],
      ['backup.claimName', /timers\.backup\.claimName: /],
      ['ofac.claimName', /timers\.ofac\.claimName: /],
    ] as const) {
      const without = template(...TIMERS, '--set', `timers.${missing}=`)
      assert.notEqual(without.status, 0)
      assert.match(without.stderr, reason)
    }
  },
)

test("the backup's CronJob copies the group-readable signing key to a private file", () => {
  const text = read('deploy/helm/custody/templates/timer-backup.yaml')
  assert.match(
    text,
    /umask 077\n\s+cp \/recovery\/recovery\.key\.pub \/recovery\/recovery\.key\.sign \/keys\/\n\s+exec custody backup --out "\/backups\/\$JOB_NAME" --recovery-key \/keys\/recovery\.key\.pub --without-nodes\n/,
  )
  assert.match(text, /name: keys\n\s+emptyDir: \{medium: Memory/)
})

const policyOf = (...args: string[]) =>
  spawnSync(
    'helm',
    [
      'template',
      'y',
      'deploy/helm/custody',
      '--kube-version',
      '1.31.0',
      '--show-only',
      'templates/network-policy.yaml',
      ...args,
    ],
    { encoding: 'utf8', cwd: ROOT },
  )

test('the chart’s network policy admits only the configured peers', needs('helm'), () => {
  const none = policyOf()
  assert.equal(none.status, 0, none.stderr)
  assert.match(none.stdout, /^ {2}policyTypes: \[Ingress, Egress\]\n {2}ingress: \[\]$/m)
  assert.doesNotMatch(none.stdout, /port: http/)
  const named = policyOf(
    '--set',
    'networkPolicy.ingressFrom[0].namespaceSelector.matchLabels.name=ingress',
  )
  assert.equal(named.status, 0, named.stderr)
  assert.match(
    named.stdout,
    /ingress:\n {4}- ports: \[\{port: http, protocol: TCP\}\]\n {6}from:\s+- namespaceSelector:\s+matchLabels:\s+name: ingress\n/,
  )
  const empty = policyOf('--set-json', 'networkPolicy.ingressFrom=[{}]')
  assert.notEqual(empty.status, 0)
  assert.match(empty.stderr, /networkPolicy\.ingressFrom: an empty entry admits everyone/)
})

test('the network policy template never allows all peers to reach a port', () => {
  const text = read('deploy/helm/custody/templates/network-policy.yaml')
  const ingress = text.slice(text.indexOf('policyTypes'), text.indexOf('egress:'))
  assert.match(
    ingress,
    /\{\{- with \.Values\.networkPolicy\.ingressFrom \}\}[\s\S]*from:[\s\S]*\{\{- else \}\}\s+ingress: \[\]\s+\{\{- end \}\}/,
  )
  assert.equal(ingress.split('- ports:').length, 2)
})

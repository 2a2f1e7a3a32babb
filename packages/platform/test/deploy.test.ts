import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { read, ROOT } from './documents.ts'

/** Files of deploy/ that nothing here can run are looked at by the linters of their own, where these are installed. */
const folder = mkdtempSync(join(tmpdir(), 'custody-deploy-'))
after(() => { rmSync(folder, { recursive: true, force: true }) })

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

test('the Dockerfile copies what there is, and pins the Node that the checkout pins', () => {
  const text = read('deploy/docker/Dockerfile')
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: { node: string } }
  assert.ok(text.includes(`FROM node:${dependencies.node}-`), 'the Node of package.json')
  for (const [, from = ''] of text.matchAll(/^COPY (packages\/\S+(?: packages\/\S+)*) \.\/?/gm)) {
    for (const path of from.split(' ')) assert.equal(globSync(path, { cwd: ROOT }).length, 1, path)
  }
  // What a bundle takes and no checkout has is built by the image.
  for (const [addon] of read('scripts/bundle.mjs').matchAll(/packages\/[\w-]+\/native\/\w+\.node/g)) assert.ok(text.includes(` ${addon}\n`), addon)
  const rust = /^rust-version = "([\d.]+)"/m.exec(read('packages/threshold/native/Cargo.toml'))?.[1]
  const image = /FROM rust:([\d.]+)-/.exec(text)?.[1] ?? ''
  assert.ok(rust === undefined || Number(image.split('.')[1]) >= Number(rust.split('.')[1]), `Rust ${image} is older than ${rust}`)
})

test('each setting that a deployment file names is one of the settings', () => {
  const known = `${read('docs/settings.md')}${read('packages/signer/README.md')}${readFileSync(join(ROOT, 'packages/platform/src/settings/settings.ts'), 'utf8')}`
  const own = new Set(['CUSTODY_PLATFORM_IMAGE', 'CUSTODY_SIGNER_IMAGE', 'CUSTODY_SIGNER_ADDRESS'])
  let names = 0
  for (const file of globSync('deploy/{docker,helm,systemd}/**/*', { cwd: ROOT, withFileTypes: true })) {
    if (!file.isFile()) continue
    for (const [name] of readFileSync(join(file.parentPath, file.name), 'utf8').matchAll(/\bCUSTODY_[A-Z_]+\b/g)) {
      names++
      assert.ok(own.has(name) || known.includes(name), `${file.name} names ${name}`)
    }
  }
  assert.ok(names > 10, `${names} names`)
})

test('hadolint finds nothing in the Dockerfile', needs('hadolint'), () => {
  run('hadolint', 'deploy/docker/Dockerfile')
})

test('the charts are taken by helm, with any name of a release, and their results by Kubernetes’ schemas', needs('helm', 'kubernetes-validate'), () => {
  const version = ['--kube-version', '1.31.0']
  const signer = ['--set', 'service.sourceRanges[0]=10.0.0.0/8']
  const variants = [
    ['custody', ...version], ['custody', ...version, '--set', 'ingress.enabled=true', '--set', 'ingress.tlsSecretName=tls', '--set', 'metrics.allow=10.0.0.0/8'],
    ['custody-signer', ...version, ...signer], ['custody-signer', ...version, '--set', 'waitForSetup=true', '--set', 'service.type=ClusterIP'],
  ]
  for (const [at, [chart = '', ...args]] of variants.entries()) {
    run('helm', 'lint', '--strict', `deploy/helm/${chart}`, ...args.slice(2).filter((each) => each !== '--kube-version'))
    // YAML takes a bare y for true.
    writeFileSync(join(folder, `${at}.yaml`), run('helm', 'template', 'y', `deploy/helm/${chart}`, ...args))
    run('kubernetes-validate', '-k', '1.31', '--strict', join(folder, `${at}.yaml`))
  }
  const open = spawnSync('helm', ['template', 'y', 'deploy/helm/custody-signer', ...version], { encoding: 'utf8', cwd: ROOT })
  assert.match(open.stderr, /service\.sourceRanges: name the addresses/)
})

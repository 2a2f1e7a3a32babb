// Generates clients from docs/openapi.json with other projects' generators, and compiles them: a
// TypeScript client (openapi-typescript), a Python client (openapi-python-client) and a Go client
// (oapi-codegen). Each generator runs with its default options. A part of the release check.
//   node scripts/generated-clients.mjs [typescript] [python] [go]
//
// A generator that cannot be installed, because its language or registry is not available, is
// reported as skipped. A client that is not generated or not compiled is a failure.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))

const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const PYTHON_CLIENT = 'openapi-python-client==0.29.1'
const DOCUMENT = join(root, 'docs/openapi.json')
const folder = mkdtempSync(join(tmpdir(), 'custody-generated-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

class Skipped extends Error {}

/** @throws Error with the last lines of the output; Skipped if `isSetUp` */
function run(command, words, { cwd = folder, env = {}, isSetUp = false } = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, words, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status === 0) return stdout
  const text = error?.message ?? `${stdout}${stderr}`.trim().split('\n').slice(-20).join('\n')
  throw new (isSetUp ? Skipped : Error)(`${command} ${words.join(' ')}: ${text}`)
}

const CLIENTS = {
  typescript() {
    const types = join(folder, 'api.d.ts')
    run(process.execPath, [join(root, 'scripts/api-types.mjs'), DOCUMENT, types])
    const use = join(folder, 'use.ts')
    writeFileSync(
      use,
      "import type { components } from './api.d.ts'\nexport type Page = components['schemas']['EventPage']\n",
    )
    const words = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--types', '', use]
    run(process.execPath, [
      join(root, 'node_modules/typescript/bin/tsc'),
      '--ignoreConfig',
      ...words,
    ])
  },
  python() {
    const tools = join(folder, 'venv')
    run('python3', ['-m', 'venv', tools], { isSetUp: true })
    const python = join(tools, 'bin/python')
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
    run(python, [...pip, PYTHON_CLIENT], { isSetUp: true })
    const out = join(folder, 'python')
    const generator = join(tools, 'bin/openapi-python-client')
    run(generator, ['generate', '--path', DOCUMENT, '--output-path', out, '--meta', 'none'])
    run(python, ['-m', 'compileall', '-q', out])
    run(python, ['-c', 'from python.api.events import list_events; from python.models import *'])
  },
  go() {
    const bin = join(folder, 'bin')
    const go = ['go', '/usr/local/go/bin/go'].find(
      (each) => spawnSync(each, ['version'], { stdio: 'ignore' }).status === 0,
    )
    if (go === undefined) throw new Skipped('Go is not installed (https://go.dev/dl)')
    run(go, ['install', OAPI_CODEGEN], { env: { GOBIN: bin }, isSetUp: true })
    const out = join(folder, 'go')
    mkdirSync(out)
    run(go, ['mod', 'init', 'example.com/client'], { cwd: out })
    const generated = run(join(bin, 'oapi-codegen'), ['-package', 'client', DOCUMENT], { cwd: out })
    writeFileSync(join(out, 'client.go'), generated)
    run(go, ['mod', 'tidy'], { cwd: out, isSetUp: true })
    run(go, ['vet', './...'], { cwd: out })
  },
}

const names = process.argv.slice(2)
const unknown = names.find((name) => !Object.hasOwn(CLIENTS, name))
if (unknown !== undefined || !existsSync(DOCUMENT)) {
  console.error(`There is no client ${unknown}. Clients: ${Object.keys(CLIENTS).join(', ')}`)
  process.exit(2)
}
const results = []
for (const [name, generate] of Object.entries(CLIENTS)) {
  if (names.length > 0 && !names.includes(name)) continue
  const began = performance.now()
  try {
    generate()
    results.push(`${name}: compiles`)
  } catch (error) {
    const isSkipped = error instanceof Skipped
    if (!isSkipped) process.exitCode = 1
    console.error(error.message)
    results.push(`${name}: ${isSkipped ? 'skipped' : 'FAILED'}`)
  }
  console.log(`${results.at(-1)} (${((performance.now() - began) / 1000).toFixed(0)} s)`)
}
console.log(results.join('; '))

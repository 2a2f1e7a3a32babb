// Tests the API against its OpenAPI document with Schemathesis (docs/fuzzing.md). Needs Python 3.10
// or later with venv; the tool is installed in a separate folder below the folder for temporary
// files.
//   npm run schemathesis -- [--examples N] [--seed S]
//   --examples N   examples of each operation (default 20)
//   --seed S       seed of the random generator (default 1)
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()

const VERSION = '4.32.5'
const folder = join(tmpdir(), `custody-schemathesis-${VERSION}`)
const python = join(folder, 'bin', 'python')

function run(command, words) {
  const { status, error } = spawnSync(command, words, { cwd: root, stdio: 'inherit' })
  if (error) console.error(`${command}: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}

if (!existsSync(join(folder, 'ready'))) {
  run('python3', ['-m', 'venv', '--clear', folder])
  run(python, [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    `schemathesis==${VERSION}`,
  ])
  run(python, ['-c', `open(${JSON.stringify(join(folder, 'ready'))}, 'w').close()`])
}
run(process.execPath, [
  'packages/platform/testing/fuzz/schemathesis.ts',
  '--python',
  python,
  ...process.argv.slice(2),
])

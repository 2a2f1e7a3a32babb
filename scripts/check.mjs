// Checks a change of a common kind: writes the derived files again, then checks types and format, and
// runs the tests that such a change can break. CONTRIBUTING.md and docs/adding-a-chain.md describe
// the changes.
//   npm run check -- KIND [TEST…]    TEST: part of the path of a further test, for example your own
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)

await underPinnedNode(fileURLToPath(import.meta.url))

const API_FILES = ['scripts/openapi.mjs', 'scripts/api-types.mjs']
const API_TESTS = ['core/http/openapi/', 'client/src/client.test', 'client/src/replay']
const CODE_TESTS = ['test/architecture', 'test/module-ranks', 'test/imports', 'test/language']
const REGISTRY_TESTS = ['chains/src/registry', 'chains/src/mainnet-facts', 'openapi-bounds']

/** What each kind of change requires: programs that write derived files, and parts of tests' paths. */
const KINDS = {
  endpoint: { write: API_FILES, tests: [...API_TESTS, 'app/api-input', ...CODE_TESTS] },
  event: {
    write: ['scripts/events-table.mjs', ...API_FILES],
    tests: [...API_TESTS, 'events/events/events-registry', ...CODE_TESTS],
  },
  token: { write: [], tests: REGISTRY_TESTS },
  network: { write: [], tests: [...REGISTRY_TESTS, 'settings/settings', 'price-coverage'] },
  coin: {
    write: [],
    tests: [...REGISTRY_TESTS, 'settings/settings', 'price-coverage', 'devnet/src/registry'],
  },
  family: {
    write: [],
    tests: [...REGISTRY_TESTS, 'chains/src/families', 'test/chain-families', ...CODE_TESTS],
  },
}

const [kind = '', ...own] = process.argv.slice(2)
if (!Object.hasOwn(KINDS, kind)) {
  console.error(`npm run check -- ${Object.keys(KINDS).join('|')} [TEST…]`)
  process.exit(1)
}

/** Runs a program with Node, and ends this process if it fails. */
function run(title, ...args) {
  console.log(`\n== ${title}`)
  const { status, error } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (error) console.error(error.message)
  if (status === 0) return
  console.error(`\n"npm run check -- ${kind}" failed at: ${title}`)
  process.exit(status ?? 1)
}

const { write, tests } = KINDS[kind]
for (const program of write) run(`write derived files: ${program}`, join(root, program))
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const cache = join(root, 'node_modules/.cache/check')
for (const project of ['.', ...(write.length > 0 ? ['packages/client'] : [])]) {
  // Later checks read what the first one has stored, and are several times faster.
  const state = join(cache, `${project.replaceAll(/\W/g, '-')}.tsbuildinfo`)
  run(`check types: ${project}`, tsc, '-p', project, '--incremental', '--tsBuildInfoFile', state)
}
run('check code', join(root, 'node_modules/oxlint/bin/oxlint'), '--deny-warnings')
run('check format: npm run format', join(root, 'node_modules/oxfmt/bin/oxfmt'), '--check')
run('run tests', join(root, 'scripts/test.mjs'), ...tests, ...own)

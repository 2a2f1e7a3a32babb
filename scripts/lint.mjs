// Runs all linters: oxlint; oxfmt's format check; knip for unused files, exports and dependencies;
// redocly's strict rules for the OpenAPI document; attw for the types of the packed client;
// commitlint for the commit messages. The first run installs the last four
// (scripts/lint/package-lock.json).
//   npm run lint
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { installTools } from './tooling.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Runs a program, and exits if it fails. */
function run(program, words) {
  const { status, error } = spawnSync(process.execPath, [join(root, program), ...words], {
    cwd: root,
    env,
    stdio: 'inherit',
  })
  if (error) console.error(error.message)
  if (status !== 0) process.exit(status ?? 1)
}

run('node_modules/oxlint/bin/oxlint', ['--deny-warnings'])
run('node_modules/oxfmt/bin/oxfmt', ['--check'])
installTools(join(root, 'scripts/lint'))
run('scripts/lint/node_modules/knip/bin/knip.js', ['--no-progress', '--no-config-hints'])
run('scripts/lint/node_modules/@redocly/cli/bin/cli.js', ['lint', 'docs/openapi.json'])
run('scripts/lint/packed-types.mjs', [])
run('scripts/lint/commits.mjs', [])

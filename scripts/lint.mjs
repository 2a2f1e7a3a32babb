// npm run lint    oxlint over the code; oxfmt's format of every file that it knows; knip for unused
//                 files, exports and dependencies; redocly's strict rules over the OpenAPI document;
//                 attw over the types of the packed client; textlint over the language of the
//                 documents; commitlint over the commit messages
// Its first run installs what the last five need (scripts/lint/package-lock.json).
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'
import { installTools } from './tooling.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Ends this process where it fails. */
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
run('scripts/lint/prose.mjs', [])
run('scripts/lint/commits.mjs', [])

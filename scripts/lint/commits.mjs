// Checks commit messages with commitlint and the rule of CONTRIBUTING.md: every commit after the
// one that introduced the rule. Without a git history, or if that commit is not in it (a shallow
// clone), it checks nothing and prints a message.
//   node scripts/lint/commits.mjs [--from COMMIT]
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../pinned-node.mjs'

/** The last commit before the rule. */
const BEFORE_THE_RULE = '0795f0ff6171ace140c0da3311dd3060974dc312'

const { values } = parseArgs({ options: { from: { type: 'string', default: BEFORE_THE_RULE } } })
const git = spawnSync('git', ['merge-base', '--is-ancestor', values.from, 'HEAD'], { cwd: root })
if (git.status !== 0) {
  console.log(`commit messages: not checked, commit ${values.from} is not in the history`)
  process.exit(0)
}
const { status, error } = spawnSync(
  process.execPath,
  [
    join(root, 'scripts/lint/node_modules/@commitlint/cli/cli.js'),
    '--config',
    join(root, 'scripts/lint/commitlint.config.mjs'),
    '--from',
    values.from,
  ],
  { cwd: root, stdio: 'inherit' },
)
if (error) console.error(error.message)
if (status === 0) console.log('commit messages: follow the rule of CONTRIBUTING.md')
process.exit(status ?? 1)

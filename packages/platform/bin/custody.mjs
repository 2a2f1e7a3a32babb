#!/usr/bin/env node
// Runs the operator's command under the pinned Node, whatever the machine has.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

if (Number(process.versions.node.split('.')[0]) >= 24) {
  // Before the first file of TypeScript: what reads one that was not compiled before is itself a
  // third of what a command takes.
  await import('../../../scripts/compile-cache.mjs')
  await import('../src/server/operator/cli.ts')
} else {
  const node = join(
    dirname(createRequire(import.meta.url).resolve('node/package.json')),
    'bin',
    'node',
  )
  const { status, error } = spawnSync(
    node,
    [fileURLToPath(import.meta.url), ...process.argv.slice(2)],
    { stdio: 'inherit' },
  )
  if (error) console.error(`custody: ${error.message}`)
  process.exitCode = status ?? 1
}

#!/usr/bin/env node
// Runs the operator's command under the pinned Node, whatever the machine has.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../src/operator/cli.ts', import.meta.url))
if (Number(process.versions.node.split('.')[0]) >= 24) await import(script)
else {
  const node = join(dirname(createRequire(import.meta.url).resolve('node/package.json')), 'bin', 'node')
  const { status, error } = spawnSync(node, [script, ...process.argv.slice(2)], { stdio: 'inherit' })
  if (error) console.error(`custody: ${error.message}`)
  process.exitCode = status ?? 1
}

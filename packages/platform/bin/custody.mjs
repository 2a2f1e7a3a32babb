#!/usr/bin/env node
// Runs the operator's command under the pinned Node, whatever the machine has.
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from '../../../scripts/built.mjs'
import { underPinnedNode } from '../../../scripts/pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const words = process.argv.slice(2)
// Help and version need no build, which takes minutes on a new checkout.
if (words.length > 0 && !words.includes('--help') && !words.includes('--version')) ensureBuilt()
// Before the first file of TypeScript: what reads one that was not compiled before is itself a
// third of what a command takes.
await import('../../../scripts/compile-cache.mjs')
await import('../src/server/operator/cli.ts')

// The test files that are named, one after the other in one process, each as a suite whose hooks are its own: see scripts/test.mjs.
import { basename } from 'node:path'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'

for (const file of process.argv.slice(2)) await describe(basename(file), async () => void await import(pathToFileURL(file).href))

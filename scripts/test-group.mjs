// The test files that are named, one after the other in one process: see scripts/test.mjs.
import { pathToFileURL } from 'node:url'

for (const file of process.argv.slice(2)) await import(pathToFileURL(file).href)

import { enableCompileCache } from 'node:module'
import { resolve } from 'node:path'

/** `npx custody …`. What a command needs is loaded when it is run, and compiled once. */
enableCompileCache()
const { main } = await import('./cli/program.ts')
await main(process.argv.slice(2), resolve(process.env['CUSTODY_HOME'] ?? '.custody'))

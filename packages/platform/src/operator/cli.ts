import { resolve } from 'node:path'
import '../../../../scripts/compile-cache.mjs'

/** `npx custody …`. What a command needs is loaded when it is run. */
const { main } = await import('./cli/program.ts')
await main(process.argv.slice(2), resolve(process.env['CUSTODY_HOME'] ?? '.custody'))

import '../../../../scripts/compile-cache.mjs'
import { dataDirOf } from '../data-dir.ts'

/**
 * `npx custody …`, and `custody …` of the platform's bundle. What a command needs is loaded when it
 * is run.
 */
const { main } = await import('./cli/program.ts')
const { COMMANDS } = await import('./cli/commands.ts')
await main(process.argv.slice(2), dataDirOf(process.env), COMMANDS)

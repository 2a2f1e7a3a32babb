import '../../../../../scripts/compile-cache.mjs'
import { dataDirOf } from '../../core/data-dir.ts'

// Other users can read no file that a command creates, except public keys.
process.umask(0o077)

/**
 * Entry point of `npx custody …` and of `custody …` in the platform's bundle. The modules that a
 * command needs are loaded when it runs.
 */
const { main } = await import('./cli/program.ts')
const { COMMANDS } = await import('./cli/commands.ts')
await main(process.argv.slice(2), dataDirOf(process.env), COMMANDS)

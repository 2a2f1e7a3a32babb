import '../../../../scripts/compile-cache.mjs'
import { homeOf } from '../home.ts'

/** `npx custody …`. What a command needs is loaded when it is run. */
const { main } = await import('./cli/program.ts')
await main(process.argv.slice(2), homeOf(process.env))

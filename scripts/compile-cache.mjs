import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * What was compiled once is not compiled at the next start. Beside the installed code, never below
 * the temporary folder, which is Node's default: whoever can write there could have others run what
 * he likes. Where it cannot be written, there is none.
 */
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url)))

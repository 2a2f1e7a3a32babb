import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * Enables the compile cache, so that a start does not compile the code again. The cache is next to
 * the installed code and not in the temporary folder, which is Node's default, because anyone who
 * can write there could inject code. If the folder is not writable, there is no cache.
 */
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url)))

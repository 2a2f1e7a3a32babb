import '../../../scripts/compile-cache.mjs'

// Other users can read no file that the node creates.
process.umask(0o077)

/** `main.ts --home DIR [--keep]`: one signer node. Imported after the compile cache is enabled. */
await import('./run.ts')

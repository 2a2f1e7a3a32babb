import '../../../scripts/compile-cache.mjs'

/** `main.ts --home DIR [--keep]`: one signer node. Imported after the compile cache is enabled. */
await import('./run.ts')

import '../../../scripts/compile-cache.mjs'

/** `main.ts --home DIR [--keep]`: one signer node. Loaded after the cache is there. */
await import('./run.ts')

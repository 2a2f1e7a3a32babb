import '../../../scripts/compile-cache.mjs'

/**
 * `main.ts --home DIR --port N [--manual] [--pace N]`: the local chains. Loaded after the cache is
 * there.
 */
await import('./run.ts')

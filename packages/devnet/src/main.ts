import '../../../scripts/compile-cache.mjs'

/**
 * `main.ts --home DIR --port N [--manual] [--pace N]`: runs the local chains. They are imported
 * after the compile cache is enabled.
 */
await import('./run.ts')

import '../../../scripts/compile-cache.mjs'

/** Entry point of `npm start`. The platform is imported after the compile cache is enabled. */
await import('./run.ts')

import '../../../scripts/compile-cache.mjs'

/** `npm start`: the platform. Imported after the compile cache is enabled. */
await import('./run.ts')

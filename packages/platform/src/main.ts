import '../../../scripts/compile-cache.mjs'

/** `npm start`: the platform. Loaded after the cache is there. */
await import('./run.ts')

import '../../../scripts/compile-cache.mjs'

// Other users can read no file that this process or a program that it starts creates.
process.umask(0o077)

/** Entry point of `npm start`. The platform is imported after the compile cache is enabled. */
await import('./run.ts')

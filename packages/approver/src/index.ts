/** The local page on which a person approves transfers with a passkey. */
export { initialize, readConfig, type Config, type InitOptions } from './config.ts'
export { run, type Running } from './server/run.ts'

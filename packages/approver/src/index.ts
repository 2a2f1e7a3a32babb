/** The local page on which a person approves transfers with a passkey. */
export { initialize, readConfig, type Config, type InitOptions } from './config.ts'
export { findBrowser, openPrivateWindow } from './server/private-window.ts'
export { run, type Running, type RunOptions } from './server/run.ts'

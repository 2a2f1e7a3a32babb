/** Reserves ports for tests of every package, as a local platform does for its own processes. */
export { freePorts } from '../packages/platform/src/server/app/local/free-ports.ts'

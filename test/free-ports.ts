/** For tests of every package: the ports that a platform chooses for its own processes. */
export { freePorts } from '../packages/platform/src/app/free-ports.ts'

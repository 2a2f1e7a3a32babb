/**
 * `node:http` without an import of it, which reads every name that the module has: one of them
 * loads Node's client for `fetch`, some megabytes and 40 ms of every start that the chains have no
 * use for.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http')

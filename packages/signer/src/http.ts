/**
 * `node:http` without an import of it, which reads every name that the module has: one of them
 * loads Node's client for `fetch`, some megabytes and 40 ms of every start that a node has no use
 * for.
 */
export const { createServer } = process.getBuiltinModule('node:http')

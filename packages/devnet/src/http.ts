/**
 * Accesses `node:http` without an import, which would evaluate every export of the module: one of
 * them loads Node's client for `fetch`, some megabytes and 40 ms of every start that the chains do
 * not need.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http')

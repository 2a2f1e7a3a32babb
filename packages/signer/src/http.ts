/**
 * Access to `node:http` without an import. An import evaluates all exports of the module; one of
 * them loads Node's client for `fetch`, which takes some megabytes and 40 ms of every start and is
 * not used by a node.
 */
export const { createServer } = process.getBuiltinModule('node:http')

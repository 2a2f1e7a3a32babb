/**
 * The signed request without Node's modules: what a browser, Deno, Bun or Node needs to make one.
 */
export * from './types.ts'
export { canonicalJson } from './canonical.ts'
export * from './json.ts'
export { transactionId } from './ids.ts'
export { ed25519OfPem } from './pem.ts'
export { requestHeaders } from './token.ts'
export * from './web-sign.ts'

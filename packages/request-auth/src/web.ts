/** Functions to create signed requests without Node's modules, in a browser, Deno, Bun or Node. */
export * from './types.ts'
export { canonicalJson } from './canonical.ts'
export * from './json.ts'
export { transactionId } from './ids.ts'
export { ed25519OfPem } from './pem.ts'
export { requestHeaders } from './token.ts'
export * from './web-sign.ts'

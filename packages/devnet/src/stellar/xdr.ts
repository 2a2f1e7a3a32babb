import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { decode as decodeText, encode as encodeText, initSync } from '@stellar/stellar-xdr-json'

/**
 * XDR by the reference implementation in Rust, compiled to WebAssembly. It is deliberately not the
 * library that clients use.
 */

let ready = false

function start(): void {
  if (ready) return
  initSync(
    readFileSync(
      fileURLToPath(
        new URL('stellar_xdr_json_bg.wasm', import.meta.resolve('@stellar/stellar-xdr-json')),
      ),
    ),
  )
  ready = true
}

/**
 * Decodes a value.
 * @throws Error if the bytes are not exactly one value of that type
 */
export function decode<T>(type: string, base64: string): T {
  start()
  return JSON.parse(decodeText(type, base64)) as T
}

export function encode(type: string, value: unknown): string {
  start()
  return encodeText(type, JSON.stringify(value))
}

export const encodeBytes = (type: string, value: unknown): Buffer =>
  Buffer.from(encode(type, value), 'base64')

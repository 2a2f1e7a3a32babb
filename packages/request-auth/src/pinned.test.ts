import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { test } from 'node:test'
import { checkCertificate, pinOf, requirePinned } from './pinned.ts'

/** Certificates of fixed dates; every test sets the clock. */
const pem = (base64: string): string =>
  `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`
/** Valid from 1 to 11 January 2020, 00:00 UTC. */
const FIRST = pem(
  'MIIBIzCByqADAgECAhBHSAWWFZ8bZQzgh8hMeFWEMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMTB2ZpeHR1cmUwHhcNMjAwMTAxMDAwMDAwWhcNMjAwMTExMDAwMDAwWjASMRAwDgYDVQQDEwdmaXh0dXJlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8a1jn4JVlWtliWTJBH2YwWV2AJ1qfyENYhDzJeUIP/l4fbxNBAiTsloEc/2LxNVQ8jpHjKY400C2PhSpgbatX6MCMAAwCgYIKoZIzj0EAwIDSAAwRQIgCzCys6G+XNaS+EXRTIf6hWEgLtL/3882Z9BY2lKVix8CIQDTqOm7MMXmwy7CbjZ7dM5pcu9WthV1Sob79pNlT22tFw==',
)
/** The same key, valid from 11 to 21 January 2020. */
const RENEWED = pem(
  'MIIBIzCByqADAgECAhBPeHHYIqspFkQSnQmnsCaEMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMTB2ZpeHR1cmUwHhcNMjAwMTExMDAwMDAwWhcNMjAwMTIxMDAwMDAwWjASMRAwDgYDVQQDEwdmaXh0dXJlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8a1jn4JVlWtliWTJBH2YwWV2AJ1qfyENYhDzJeUIP/l4fbxNBAiTsloEc/2LxNVQ8jpHjKY400C2PhSpgbatX6MCMAAwCgYIKoZIzj0EAwIDSAAwRQIhAOXfX9/EsFbP/UmgUTknyrxc1GNJBlIB+T3t+oQMoFQ3AiA26aVz7SKzmIth3Dzsn1sQA47WLre5mJ1yZDkfKtACJw==',
)
/** Another key, the same name and dates as `FIRST`. */
const OTHER = pem(
  'MIIBIzCByqADAgECAhBKOsRYshVDwVRs6eQTLaAEMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMTB2ZpeHR1cmUwHhcNMjAwMTAxMDAwMDAwWhcNMjAwMTExMDAwMDAwWjASMRAwDgYDVQQDEwdmaXh0dXJlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9E31UsxJX6IJflqzSEK2Ou+mkTEkB2OE7MNcEbMHOzqFT7l5SWeQfzXZAAR4f+/B6nZyV0re6UYQoXJLKzuv26MCMAAwCgYIKoZIzj0EAwIDSAAwRQIhAMbkm/qDqlCc3hTLe2AmfrW9FmCxMSI0qn0hEWAk5G3kAiBq2NfscP08AcpbT2kWYdjpfx4zi+z6wc1jQQCKxMVX0Q==',
)
const at = (day: number, ms = 0): number => Date.UTC(2020, 0, day) + ms
const pin = pinOf(FIRST)

test('a pin identifies the key: a renewed certificate keeps the pin, another key has another', () => {
  assert.match(pin, /^[0-9a-f]{64}$/)
  assert.equal(pinOf(RENEWED), pin)
  assert.equal(pinOf(new X509Certificate(FIRST)), pin)
  assert.notEqual(pinOf(OTHER), pin)
  assert.throws(() => pinOf('none'))
})

test('accepts a certificate of the pinned key only, from its first to its last millisecond', () => {
  const check = (text: string | undefined, nowMs: number, pins = [pin]) =>
    checkCertificate(text === undefined ? undefined : new X509Certificate(text), pins, nowMs)
  for (const nowMs of [at(1), at(5), at(11)]) assert.equal(check(FIRST, nowMs), pin)
  assert.equal(check(RENEWED, at(12)), pin)
  assert.equal(check(OTHER, at(5), [pin, pinOf(OTHER)]), pinOf(OTHER))
  assert.throws(() => check(FIRST, at(11, 1)), {
    name: 'CertificateError',
    code: 'EXPIRED',
    message: 'the TLS certificate expired on 2020-01-11',
  })
  assert.throws(() => check(FIRST, at(1, -1)), {
    code: 'NOT_YET_VALID',
    message: 'the TLS certificate is valid from 2020-01-01 only; check both clocks',
  })
  assert.throws(() => check(FIRST, NaN), { code: 'EXPIRED' })
  assert.throws(() => check(OTHER, at(5)), {
    code: 'OTHER_KEY',
    message: 'the TLS certificate has another key than the pinned one',
  })
  assert.throws(() => check(OTHER, at(30)), { code: 'OTHER_KEY' }, 'the key is checked first')
  assert.throws(() => check(undefined, at(5)), {
    code: 'MISSING',
    message: 'no TLS certificate was presented',
  })
  assert.throws(() => check(FIRST, at(5), []), { code: 'OTHER_KEY' })
})

test('closes a connection with the reason, and recognises an expired certificate of the key', () => {
  const handshake = (text: string | undefined, nowMs: number) => {
    let why: unknown = null
    const presented: string[] = []
    const certificate = text === undefined ? undefined : new X509Certificate(text)
    const socket = Object.assign(new EventEmitter(), {
      getPeerX509Certificate: () => certificate,
      destroy: (error: Error) => {
        why = error
      },
    })
    requirePinned(socket as unknown as TLSSocket, {
      pin,
      now: () => nowMs,
      onPresented: ({ validTo }) => {
        presented.push(validTo)
      },
    })
    socket.emit('secureConnect')
    return [(why as { code?: string } | null)?.code ?? null, presented.length]
  }
  assert.deepEqual(handshake(FIRST, at(5)), [null, 1])
  assert.deepEqual(handshake(FIRST, at(12)), ['EXPIRED', 1])
  assert.deepEqual(handshake(OTHER, at(5)), ['OTHER_KEY', 0])
  assert.deepEqual(handshake(undefined, at(5)), ['MISSING', 0])
})
